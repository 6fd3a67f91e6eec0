// A backend: where tensors live and who works on them.
//
// Users hold Tensor views of memory that a backend allocated and hand them back to it; they never
// learn whether it is the host's or a device's. A backend outlives the memory that it gave. Not
// thread-safe.
//
//   SAVEGATE_TRY(auto backend, open_backend("cpu", /*rank=*/0));
//   SAVEGATE_TRY(Buffer memory, backend->allocate(1 << 20));
//   Tensor weights{Dtype::kBf16, {512, 1024}, memory.get()};
//   SAVEGATE_CHECK(backend->fill(weights, {.seed = 7, .name_hash = name_hash("w")}, 0));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "faults/status.h"
#include "gpu/collectives.h"
#include "gpu/compare.h"
#include "gpu/digest.h"
#include "gpu/fill.h"
#include "gpu/tensor.h"

namespace savegate::gpu {

// Memory of a backend; given back when it goes.
using Buffer = std::unique_ptr<std::byte[], std::function<void(std::byte*)>>;

// Work that was started; wait() once.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual Result<void> wait() = 0;
};

// Called in the middle of a copy, by any thread: the first half is there, and the second is not
// copied before it returns. It must not use the backend.
using Midway = std::function<void()>;

// A device's memory, in bytes. What the allocator holds beyond what it has handed out nobody else
// can use: where an allocation fails it is given back to the device, and the allocation tried once
// more.
struct MemoryFacts {
  std::uint64_t allocated = 0;  // handed out
  std::uint64_t reserved = 0;   // taken from the device by this process's allocator
  std::uint64_t free = 0;       // of the device, for anybody
  // The most that was reserved since the facts were last asked for, where that is known.
  std::optional<std::uint64_t> reserved_peak;
  std::uint64_t retries = 0;   // allocations so far that were granted at the second try
  std::uint64_t refusals = 0;  // that failed for good: out of memory, the device's or pinned
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "host", "cuda"

  // Zeroed memory, aligned for any dtype.
  virtual Result<Buffer> allocate(std::uint64_t bytes) = 0;
  // Memory of the host that copies to and from tensors run fastest with.
  virtual Result<Buffer> allocate_staging(std::uint64_t bytes) = 0;

  virtual Result<void> fill(const Tensor& tensor, const FillKey& key,
                            std::uint64_t first_index) = 0;
  // Of each tensor, all in one go.
  virtual Result<std::vector<Digest>> digests(std::span<const Tensor> tensors) = 0;
  Result<Digest> digest(const Tensor& tensor);
  // Of two tensors of equal size.
  virtual Result<Difference> compare(const Tensor& left, const Tensor& right) = 0;

  // Between tensors of equal size, without a way over the host.
  virtual Result<void> copy(const Tensor& to, const Tensor& from) = 0;
  virtual Result<void> copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                                    std::uint64_t bytes) = 0;
  virtual Result<void> copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                                      std::uint64_t bytes) = 0;
  // Copies what is there when it is called, whatever is done to the tensor afterwards through this
  // backend; `to` is complete after wait(). `midway` may be empty.
  virtual Result<std::unique_ptr<Pending>> start_copy_to_host(void* to, const Tensor& from,
                                                              std::uint64_t offset,
                                                              std::uint64_t bytes,
                                                              Midway midway) = 0;

  // Nothing where the memory is the host's.
  virtual Result<std::optional<MemoryFacts>> memory() = 0;
  // Gives what the allocator holds and has not handed out back to the device.
  virtual Result<void> trim() = 0;

  // Between the memories of all ranks, which meet over `side`; null where `side` itself is that.
  virtual Result<std::unique_ptr<Collectives>> open_collectives(
      Collectives& side, std::chrono::milliseconds timeout) = 0;
};

// For SAVEGATE_DEVICE: "cpu" is the host's memory; "cuda" the GPU of this rank, "cuda:1" a certain
// one; "simulated" the host's memory behind a device's allocator (gpu/simulated_device.h).
Result<std::unique_ptr<Backend>> open_backend(std::string_view device, int rank = 0);

}  // namespace savegate::gpu
