#include "scenarios/subjects/reference/staging.h"

#include <utility>

namespace savegate::reference {

Result<gpu::Buffer> Staging::take(std::uint64_t bytes) {
  gpu::Buffer block;
  {
    const std::lock_guard lock(pool_->mutex);
    if (auto found = pool_->waiting.find(bytes); found != pool_->waiting.end()) {
      block = std::move(found->second);
      pool_->waiting.erase(found);
    }
  }
  if (block == nullptr) {
    SAVEGATE_TRY(block, device_.allocate_staging(bytes));
    const std::lock_guard lock(pool_->mutex);
    pool_->bytes.held += bytes;
  }
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->bytes.used += bytes;
  }
  std::byte* memory = block.get();
  // The deleter holds the block, and hands it back to the pool when its user lets go.
  auto held = std::make_shared<gpu::Buffer>(std::move(block));
  return gpu::Buffer(memory, [pool = pool_, held, bytes](std::byte* /*memory*/) {
    const std::lock_guard lock(pool->mutex);
    pool->waiting.emplace(bytes, std::move(*held));
    pool->bytes.used -= bytes;
  });
}

Result<State> Staging::snapshot(const State& state) {
  State copy;
  copy.tensors = state.tensors;
  copy.parameters = state.parameters;
  copy.scheduler = state.scheduler;
  copy.random = state.random;
  copy.counters = state.counters;
  std::vector<std::unique_ptr<gpu::Pending>> copies;
  Result<void> copied;
  for (NamedTensor& named : copy.tensors) {
    copied = start_copy(named.tensor, copy.memory, copies);
    if (!copied) break;
  }
  // Also after a failure: until then the device writes to blocks that are about to go.
  for (const auto& each : copies) {
    const Result<void> finished = each->wait();
    if (copied) copied = finished;
  }
  SAVEGATE_CHECK(copied);
  return copy;
}

// Turns the tensor into its copy, which is complete when the last of `copies` is.
Result<void> Staging::start_copy(gpu::Tensor& tensor, std::vector<gpu::Buffer>& blocks,
                                 std::vector<std::unique_ptr<gpu::Pending>>& copies) {
  const std::uint64_t bytes = tensor.bytes();
  SAVEGATE_TRY(gpu::Buffer block, take(bytes));
  SAVEGATE_TRY(auto started, device_.start_copy_to_host(block.get(), tensor, 0, bytes, {}));
  tensor.data = block.get();
  blocks.push_back(std::move(block));
  copies.push_back(std::move(started));
  return {};
}

void Staging::trim() {
  std::multimap<std::uint64_t, gpu::Buffer> released;
  const std::lock_guard lock(pool_->mutex);
  released.swap(pool_->waiting);
  for (const auto& [bytes, block] : released) pool_->bytes.held -= bytes;
}

Staging::Bytes Staging::bytes() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->bytes;
}

}  // namespace savegate::reference
