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
    SAVEGATE_TRY(block, host_.allocate(bytes));
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

Result<State> Staging::snapshot(gpu::Backend& device, const State& state) {
  State copy;
  copy.tensors = state.tensors;
  copy.parameters = state.parameters;
  copy.scheduler = state.scheduler;
  copy.random = state.random;
  copy.counters = state.counters;
  for (NamedTensor& named : copy.tensors) {
    const gpu::Tensor source = named.tensor;
    SAVEGATE_TRY(gpu::Buffer block, take(source.bytes()));
    SAVEGATE_CHECK(device.copy_to_host(block.get(), source, 0, source.bytes()));
    named.tensor.data = block.get();
    copy.memory.push_back(std::move(block));
  }
  return copy;
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
