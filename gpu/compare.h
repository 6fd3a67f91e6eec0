// Bitwise compare: how many bytes differ and which is the first. NaNs are bytes like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace savegate::gpu {

struct Difference {
  std::uint64_t count = 0;             // bytes
  std::optional<std::uint64_t> first;  // offset of the first byte that differs
  bool equal() const { return count == 0; }
};

Difference compare_host(const void* left, const void* right, std::uint64_t bytes);

}  // namespace savegate::gpu
