#include "gpu/backend.h"

#include <charconv>

#include "gpu/cuda_module.h"
#include "gpu/host_backend.h"
#include "gpu/simulated_device.h"

namespace savegate::gpu {

Result<Digest> Backend::digest(const Tensor& tensor) {
  SAVEGATE_TRY(const std::vector<Digest> one, digests({&tensor, 1}));
  return one.front();
}

Result<std::unique_ptr<Backend>> open_backend(std::string_view device, int rank) {
  if (device == "cpu") return std::make_unique<HostBackend>();
  if (device == "simulated") return open_simulated(rank);
  if (device == "cuda") return open_cuda({.rank = rank, .ordinal = std::nullopt});
  constexpr std::string_view kNumbered = "cuda:";
  int ordinal = 0;
  if (device.starts_with(kNumbered)) {
    const char* end = device.data() + device.size();
    const auto parsed = std::from_chars(device.data() + kNumbered.size(), end, ordinal);
    if (parsed.ec == std::errc() && parsed.ptr == end && ordinal >= 0) {
      return open_cuda({.rank = rank, .ordinal = ordinal});
    }
  }
  return fail(unavailable("there is no device `" + std::string(device) +
                          "`; there are `cpu`, `simulated`, `cuda` and `cuda:N`"));
}

}  // namespace savegate::gpu
