// The tree digest: leaves are XXH3-64 (seed 0) of 4 KiB blocks, the last of which may be shorter;
// the root is XXH3-128 over the leaves as 8-byte little-endian words, followed by the length in
// bytes as one more.
//
// Any xxHash library can check it, a GPU computes the leaves at memory speed, and two lists of
// leaves tell which blocks differ.
//
//   TreeDigest tree;
//   tree.update(first, 5000);
//   tree.update(second, 300);
//   std::string digest = tree.finish().hex();
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gpu/leaf.h"

namespace savegate::gpu {

// 16 bytes in xxHash's canonical order: the high 64 bits first, each half big-endian.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Digest&) const = default;
  std::string hex() const;  // 32 digits, the order of `bytes`
};

class TreeDigest {
 public:
  TreeDigest();
  TreeDigest(TreeDigest&&) noexcept;
  TreeDigest& operator=(TreeDigest&&) noexcept;
  ~TreeDigest();

  void update(const void* data, std::size_t bytes);
  // The digest of all bytes so far. Ends the tree: it takes no more bytes.
  Digest finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Digest digest_of(const void* data, std::size_t bytes);
// The same, by so many threads.
Digest digest_of(const void* data, std::size_t bytes, unsigned threads);
// The digest from its leaves and the length in bytes.
Digest root_of(std::span<const std::uint64_t> leaves, std::uint64_t bytes);
// From the two halves of an XXH3-128.
Digest canonical(std::uint64_t high, std::uint64_t low);

inline Digest digest_of(std::string_view bytes) { return digest_of(bytes.data(), bytes.size()); }

}  // namespace savegate::gpu
