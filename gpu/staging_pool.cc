#include "gpu/staging_pool.h"

#include <bit>

namespace savegate::gpu {

StagingBlock& StagingBlock::operator=(StagingBlock&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::exchange(other.pool_, nullptr);
  memory_ = std::move(other.memory_);
  size_ = other.size_;
  asked_ = other.asked_;
  return *this;
}

void StagingBlock::give_back() {
  if (pool_ != nullptr) pool_->give_back(std::move(memory_), size_, asked_);
  pool_ = nullptr;
}

Result<StagingBlock> StagingPool::take(std::uint64_t bytes) {
  const std::uint64_t size = rounding_ == Rounding::kExact ? bytes : std::bit_ceil(bytes);
  Buffer memory;
  if (const auto found = idle_.find(size); found != idle_.end()) {
    memory = std::move(found->second);
    idle_.erase(found);
  } else {
    SAVEGATE_TRY(memory, backend_.allocate_staging(size));
    facts_.held += size;
  }
  facts_.asked += bytes;
  return StagingBlock(*this, std::move(memory), size, bytes);
}

void StagingPool::give_back(Buffer memory, std::uint64_t size, std::uint64_t asked) {
  facts_.asked -= asked;
  idle_.emplace(size, std::move(memory));
}

void StagingPool::trim() {
  for (const auto& [size, memory] : idle_) facts_.held -= size;
  idle_.clear();
}

}  // namespace savegate::gpu
