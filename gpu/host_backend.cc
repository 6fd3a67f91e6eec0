#include <sys/mman.h>

#include <cstring>
#include <string>

#include "gpu/backend.h"

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

  Result<void> fill(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) override {
    fill_host(tensor, key, first_index);
    return {};
  }

  Result<Digest> digest(const Tensor& tensor) override {
    return digest_of(tensor.data, tensor.bytes());
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

  Result<std::optional<MemoryFacts>> memory() override { return std::nullopt; }
};

}  // namespace

Result<std::unique_ptr<Backend>> open_backend(std::string_view device) {
  if (device == "cpu") return std::make_unique<HostBackend>();
  return fail(unavailable("device `" + std::string(device) + "` is not there; use `cpu`"));
}

}  // namespace savegate::gpu
