// A neighbour: another allocator on the same device, which takes what it can get.
//
// As a serving engine that wakes up would, it finds out by allocating how much there is for others
// (the wake probe), or leaves a program only so much (the memory hog).
//
//   Neighbour neighbour(*backend);
//   SAVEGATE_TRY(std::uint64_t wakeable, neighbour.probe());      // and gives it back
//   SAVEGATE_TRY(std::uint64_t free, neighbour.leave(64 << 20));  // holds all the rest
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/backend.h"

namespace savegate::gpu {

class Neighbour {
 public:
  explicit Neighbour(Backend& backend) : backend_(backend) {}

  // The bytes that could be allocated, in pieces.
  Result<std::uint64_t> probe();
  // Holds on to memory until no more than `headroom` is free; what is free then.
  Result<std::uint64_t> leave(std::uint64_t headroom);

 private:
  Result<std::uint64_t> take(std::uint64_t headroom);
  Result<std::uint64_t> free_bytes();

  Backend& backend_;
  std::vector<Buffer> held_;
};

}  // namespace savegate::gpu
