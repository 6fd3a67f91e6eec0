#include "gpu/host_backend.h"

#include <sys/mman.h>

#include <cstring>
#include <string>

namespace savegate::gpu {
namespace {

class HostBackend : public Backend {
 public:
  std::string_view name() const override { return "host"; }

  // Mapped, not taken from the heap: pages come zeroed, and only when they are touched.
  Result<Buffer> allocate(std::uint64_t bytes) override {
    const std::uint64_t mapped = bytes == 0 ? 1 : bytes;
    void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      Status status = system_error("mmap", "");
      status.asked = bytes;
      return fail(std::move(status));
    }
    return Buffer(static_cast<std::byte*>(memory),
                  [mapped](std::byte* mapping) { ::munmap(mapping, mapped); });
  }

  Result<Buffer> allocate_staging(std::uint64_t bytes) override { return allocate(bytes); }

  Result<void> fill(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) override {
    fill_host(tensor, key, first_index);
    return {};
  }

  Result<std::vector<Digest>> digests(std::span<const Tensor> tensors) override {
    std::vector<Digest> digests;
    digests.reserve(tensors.size());
    for (const Tensor& tensor : tensors) digests.push_back(digest_of(tensor.data, tensor.bytes()));
    return digests;
  }

  Result<Difference> compare(const Tensor& left, const Tensor& right) override {
    if (left.bytes() != right.bytes()) {
      return fail(invalid("compare: tensors of " + std::to_string(left.bytes()) + " and " +
                          std::to_string(right.bytes()) + " bytes"));
    }
    return compare_host(left.data, right.data, left.bytes());
  }

  Result<void> copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                            std::uint64_t bytes) override {
    std::memcpy(to, from.data + offset, bytes);
    return {};
  }

  Result<void> copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                              std::uint64_t bytes) override {
    std::memcpy(to.data + offset, from, bytes);
    return {};
  }

  Result<std::unique_ptr<Pending>> start_copy_to_host(void* to, const Tensor& from,
                                                      std::uint64_t offset, std::uint64_t bytes,
                                                      Midway midway) override {
    const std::uint64_t half = bytes / 2;
    SAVEGATE_CHECK(copy_to_host(to, from, offset, half));
    if (midway) midway();
    SAVEGATE_CHECK(
        copy_to_host(static_cast<std::byte*>(to) + half, from, offset + half, bytes - half));
    return std::make_unique<Done>();
  }

  Result<std::optional<MemoryFacts>> memory() override { return std::nullopt; }
  Result<void> trim() override { return {}; }

  Result<std::unique_ptr<Collectives>> open_collectives(
      Collectives& /*side*/, std::chrono::milliseconds /*timeout*/) override {
    return nullptr;
  }

 private:
  struct Done : Pending {
    Result<void> wait() override { return {}; }
  };
};

}  // namespace

std::unique_ptr<Backend> open_host() { return std::make_unique<HostBackend>(); }

}  // namespace savegate::gpu
