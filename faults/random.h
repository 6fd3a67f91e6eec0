// Counter-based random numbers: a pure function of its counters, so that no order of calls changes
// what any of them gives.
#pragma once

#include <cstdint>
#include <string_view>

namespace savegate::faults {

// The finaliser of splitmix64: every bit of the input reaches every bit of the output.
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix_bits(hash);
}

// Uniform in [0, 1).
constexpr double random_unit(std::uint64_t seed, std::uint64_t rule, int rank,
                             std::uint64_t count) {
  std::uint64_t bits = mix_bits(seed);
  bits = mix_bits(bits ^ rule);
  bits = mix_bits(bits ^ static_cast<std::uint64_t>(static_cast<std::int64_t>(rank)));
  bits = mix_bits(bits ^ count);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace savegate::faults
