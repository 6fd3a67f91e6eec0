#include "gpu/cuda/compare_launcher.h"

#include "gpu/cuda/kernels.h"

namespace savegate::gpu::cuda {

Result<Difference> CompareLauncher::run(const Tensor& left, const Tensor& right) {
  SAVEGATE_CHECK(total_.reserve(sizeof(DeviceDifference)));
  SAVEGATE_CHECK(host_.reserve(sizeof(DeviceDifference)));
  const cudaStream_t stream = device_->stream();
  auto* total = reinterpret_cast<DeviceDifference*>(total_.data());
  auto* found = reinterpret_cast<DeviceDifference*>(host_.data());
  *found = {0, ~0ULL};
  SAVEGATE_CHECK(
      device_->check(cudaMemcpyAsync(total, found, sizeof(*total), cudaMemcpyHostToDevice, stream),
                     "cudaMemcpyAsync"));
  SAVEGATE_CHECK(device_->check(launch_compare(left.data, right.data, left.bytes(), total,
                                               device_->multiprocessors(), stream),
                                "compare kernel"));
  SAVEGATE_CHECK(
      device_->check(cudaMemcpyAsync(found, total, sizeof(*total), cudaMemcpyDeviceToHost, stream),
                     "cudaMemcpyAsync"));
  SAVEGATE_CHECK(device_->synchronize());
  Difference difference{.count = found->count, .first = std::nullopt};
  if (found->count > 0) difference.first = found->first;
  return difference;
}

}  // namespace savegate::gpu::cuda
