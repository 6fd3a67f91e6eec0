// Digests of memory wherever it lies, for callers that know devices by name alone.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "faults/status.h"
#include "gpu/digest.h"
#include "gpu/tensor.h"

namespace savegate::worker {

// Of memory of `device`, "cpu" or "cuda:N". Thread-safe; a backend is opened once a device.
Result<std::vector<gpu::Digest>> digests_on(const std::string& device,
                                            std::span<const gpu::Tensor> memory);

}  // namespace savegate::worker
