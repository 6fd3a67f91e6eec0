// A backend: where tensors live and who works on them.
//
// Users hold Tensor views of memory that a backend allocated and hand them back to it; they never
// learn whether it is the host's or a device's.
//
//   SAVEGATE_TRY(auto backend, open_backend("cpu"));
//   SAVEGATE_TRY(Buffer memory, backend->allocate(1 << 20));
//   Tensor weights{Dtype::kBf16, {512, 1024}, memory.data()};
//   SAVEGATE_CHECK(backend->fill(weights, {.seed = 7, .name_hash = name_hash("w")}, 0));
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "faults/status.h"
#include "gpu/compare.h"
#include "gpu/digest.h"
#include "gpu/fill.h"
#include "gpu/tensor.h"

namespace savegate::gpu {

// Memory of a backend; given back when it goes.
using Buffer = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

// A device's memory, in bytes. What the allocator holds beyond what it has handed out nobody else
// can use.
struct MemoryFacts {
  std::uint64_t allocated = 0;  // handed out
  std::uint64_t reserved = 0;   // taken from the device by this process's allocator
  std::uint64_t free = 0;       // of the device, for anybody
  // The most that was reserved since the facts were last asked for, where that is known.
  std::optional<std::uint64_t> reserved_peak;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "host"

  // Zeroed memory, aligned for any dtype.
  virtual Result<Buffer> allocate(std::uint64_t bytes) = 0;
  virtual Result<void> fill(const Tensor& tensor, const FillKey& key,
                            std::uint64_t first_index) = 0;
  virtual Result<Digest> digest(const Tensor& tensor) = 0;
  // Of two tensors of equal size.
  virtual Result<Difference> compare(const Tensor& left, const Tensor& right) = 0;
  virtual Result<void> copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                                    std::uint64_t bytes) = 0;
  virtual Result<void> copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                                      std::uint64_t bytes) = 0;

  // Nothing where the memory is the host's.
  virtual Result<std::optional<MemoryFacts>> memory() = 0;
};

// For SAVEGATE_DEVICE: "cpu" is the host's memory.
Result<std::unique_ptr<Backend>> open_backend(std::string_view device);

}  // namespace savegate::gpu
