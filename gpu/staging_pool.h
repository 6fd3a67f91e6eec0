// A pool of staging memory: what a save borrows to bring tensors to the host, kept for the next one
// until it is trimmed.
//
// Blocks have the size that was asked for. Rounding::kPowerOfTwo does as common caching allocators
// do, whose blocks pin up to twice what is used; facts() tells both figures.
//
//   StagingPool pool(backend, Rounding::kExact);
//   SAVEGATE_TRY(StagingBlock block, pool.take(bytes));
//   … block.data() …                       // back in the pool when `block` goes
//   pool.trim();                           // back with the system
//
// Not thread-safe; outlives its blocks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "gpu/backend.h"

namespace savegate::gpu {

enum class Rounding : std::uint8_t { kExact, kPowerOfTwo };

struct StagingFacts {
  std::uint64_t asked = 0;  // bytes in use, as they were asked for
  std::uint64_t held = 0;   // bytes that the pool holds, in use or not
};

class StagingPool;

class StagingBlock {
 public:
  StagingBlock() = default;
  StagingBlock(StagingBlock&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        memory_(std::move(other.memory_)),
        size_(other.size_),
        asked_(other.asked_) {}
  StagingBlock& operator=(StagingBlock&& other) noexcept;
  ~StagingBlock() { give_back(); }

  std::byte* data() const { return memory_.get(); }
  std::uint64_t bytes() const { return asked_; }

 private:
  friend class StagingPool;
  StagingBlock(StagingPool& pool, Buffer memory, std::uint64_t size, std::uint64_t asked)
      : pool_(&pool), memory_(std::move(memory)), size_(size), asked_(asked) {}
  void give_back();

  StagingPool* pool_ = nullptr;
  Buffer memory_;
  std::uint64_t size_ = 0;
  std::uint64_t asked_ = 0;
};

class StagingPool {
 public:
  StagingPool(Backend& backend, Rounding rounding) : backend_(backend), rounding_(rounding) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  Result<StagingBlock> take(std::uint64_t bytes);
  void trim();
  StagingFacts facts() const { return facts_; }

 private:
  friend class StagingBlock;
  void give_back(Buffer memory, std::uint64_t size, std::uint64_t asked);

  Backend& backend_;
  Rounding rounding_;
  StagingFacts facts_;
  std::multimap<std::uint64_t, Buffer> idle_;  // by size
};

}  // namespace savegate::gpu
