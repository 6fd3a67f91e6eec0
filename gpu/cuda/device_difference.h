// What a compare launch finds, in device memory.
#pragma once

namespace savegate::gpu::cuda {

// As Difference; `first` is ~0 where nothing differs, and so at first.
struct DeviceDifference {
  unsigned long long count;
  unsigned long long first;
};

}  // namespace savegate::gpu::cuda
