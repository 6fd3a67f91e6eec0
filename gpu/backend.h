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
#include <string_view>

#include "faults/status.h"
#include "gpu/compare.h"
#include "gpu/digest.h"
#include "gpu/fill.h"
#include "gpu/tensor.h"

namespace savegate::gpu {

// Memory of a backend; given back when it goes.
using Buffer = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

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
};

// For SAVEGATE_DEVICE: "cpu" is the host's memory.
Result<std::unique_ptr<Backend>> open_backend(std::string_view device);

}  // namespace savegate::gpu
