// The backend of the host's own memory.
#pragma once

#include <memory>

#include "gpu/backend.h"

namespace savegate::gpu {

class HostBackend : public Backend {
 public:
  std::string_view name() const override { return "host"; }
  Result<Buffer> allocate(std::uint64_t bytes) override;
  Result<Buffer> allocate_staging(std::uint64_t bytes) override;
  Result<void> fill(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) override;
  Result<std::vector<Digest>> digests(std::span<const Tensor> tensors) override;
  Result<Difference> compare(const Tensor& left, const Tensor& right) override;
  Result<void> copy(const Tensor& to, const Tensor& from) override;
  Result<void> copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                            std::uint64_t bytes) override;
  Result<void> copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                              std::uint64_t bytes) override;
  Result<std::unique_ptr<Pending>> start_copy_to_host(void* to, const Tensor& from,
                                                      std::uint64_t offset, std::uint64_t bytes,
                                                      Midway midway) override;
  Result<std::optional<MemoryFacts>> memory() override { return std::nullopt; }
  Result<void> trim() override { return {}; }
  Result<std::unique_ptr<Collectives>> open_collectives(Collectives& side,
                                                        std::chrono::milliseconds timeout) override;
};

}  // namespace savegate::gpu
