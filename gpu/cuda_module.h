// The cuda backend is a module, loaded when it is asked for: a program that is linked without CUDA
// runs where there is no driver, and uses GPUs where there are some.
#pragma once

#include <memory>
#include <optional>

#include "gpu/backend.h"

namespace savegate::gpu {

struct CudaOptions {
  int rank = 0;
  std::optional<int> ordinal;  // the rank's own, counting round, where absent
};

// Unavailable, with the reason, where the module, the driver or a GPU is not there.
Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& options);

inline constexpr const char* kCudaModule = "libsavegate_cuda.so";  // in the program's ../lib
inline constexpr const char* kOpenCudaSymbol = "savegate_open_cuda";
// What the module defines under that name; of the same build as the program, so C++ goes across.
using OpenCuda = void(const CudaOptions& options, Result<std::unique_ptr<Backend>>& opened);

}  // namespace savegate::gpu
