#include "gpu/host_backend.h"

#include <sys/mman.h>

#include <cstring>
#include <string>

namespace savegate::gpu {
namespace {

struct Done : Pending {
  Result<void> wait() override { return {}; }
};

Result<void> check_equal_size(const char* operation, const Tensor& left, const Tensor& right) {
  if (left.bytes() == right.bytes()) return {};
  return fail(invalid(std::string(operation) + ": tensors of " + std::to_string(left.bytes()) +
                      " and " + std::to_string(right.bytes()) + " bytes"));
}

// Mapped, not taken from the heap: pages come zeroed, and only when they are touched.
Result<Buffer> map(std::uint64_t bytes) {
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

}  // namespace

Result<Buffer> HostBackend::allocate(std::uint64_t bytes) { return map(bytes); }

Result<Buffer> HostBackend::allocate_staging(std::uint64_t bytes) { return map(bytes); }

Result<void> HostBackend::fill(const Tensor& tensor, const FillKey& key,
                               std::uint64_t first_index) {
  fill_host(tensor, key, first_index);
  return {};
}

Result<std::vector<Digest>> HostBackend::digests(std::span<const Tensor> tensors) {
  std::vector<Digest> digests;
  digests.reserve(tensors.size());
  for (const Tensor& tensor : tensors) digests.push_back(digest_of(tensor.data, tensor.bytes()));
  return digests;
}

Result<Difference> HostBackend::compare(const Tensor& left, const Tensor& right) {
  SAVEGATE_CHECK(check_equal_size("compare", left, right));
  return compare_host(left.data, right.data, left.bytes());
}

Result<void> HostBackend::copy(const Tensor& to, const Tensor& from) {
  SAVEGATE_CHECK(check_equal_size("copy", to, from));
  std::memcpy(to.data, from.data, from.bytes());
  return {};
}

Result<void> HostBackend::copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                                       std::uint64_t bytes) {
  std::memcpy(to, from.data + offset, bytes);
  return {};
}

Result<void> HostBackend::copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                                         std::uint64_t bytes) {
  std::memcpy(to.data + offset, from, bytes);
  return {};
}

Result<std::unique_ptr<Pending>> HostBackend::start_copy_to_host(void* to, const Tensor& from,
                                                                 std::uint64_t offset,
                                                                 std::uint64_t bytes,
                                                                 Midway midway) {
  const std::uint64_t half = bytes / 2;
  SAVEGATE_CHECK(copy_to_host(to, from, offset, half));
  if (midway) midway();
  SAVEGATE_CHECK(
      copy_to_host(static_cast<std::byte*>(to) + half, from, offset + half, bytes - half));
  return std::make_unique<Done>();
}

Result<std::unique_ptr<Collectives>> HostBackend::open_collectives(
    Collectives& /*side*/, std::chrono::milliseconds /*timeout*/) {
  return nullptr;
}

}  // namespace savegate::gpu
