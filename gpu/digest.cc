#include "gpu/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <vector>

#include "gpu/leaf_hash.h"

// Everything inlined: the streaming state then lives in Impl, and no call crosses the library.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace savegate::gpu {
namespace {

std::uint64_t little_endian(std::uint64_t word) {
  static_assert(std::endian::native == std::endian::little,
                "leaves are hashed as they lie in memory");
  return word;
}

Digest finish_root(XXH3_state_t& root, std::uint64_t bytes) {
  const std::uint64_t length = little_endian(bytes);
  XXH3_128bits_update(&root, &length, sizeof(length));
  const XXH128_hash_t hash = XXH3_128bits_digest(&root);
  return canonical(hash.high64, hash.low64);
}

}  // namespace

// Leaves are collected in a small array and given to the root together: XXH3 likes long inputs.
struct TreeDigest::Impl {
  XXH3_state_t root;
  std::array<std::uint64_t, 512> leaves{};
  std::size_t leaf_count = 0;
  std::array<std::byte, kLeafBytes> block{};  // an incomplete leaf
  std::size_t block_bytes = 0;
  std::uint64_t length = 0;

  Impl() { XXH3_128bits_reset(&root); }

  void add_leaf(const void* data, std::size_t bytes) {
    leaves[leaf_count++] = little_endian(XXH3_64bits(data, bytes));
    if (leaf_count == leaves.size()) flush_leaves();
  }
  // The first of these whole leaves, and how many that was.
  std::size_t add_leaves(const void* data, std::size_t count) {
    const std::size_t taken = std::min(count, leaves.size() - leaf_count);
    hash_leaves(data, taken, &leaves[leaf_count]);
    leaf_count += taken;
    if (leaf_count == leaves.size()) flush_leaves();
    return taken;
  }
  void flush_leaves() {
    XXH3_128bits_update(&root, leaves.data(), leaf_count * sizeof(std::uint64_t));
    leaf_count = 0;
  }
};

std::string Digest::hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

TreeDigest::TreeDigest() : impl_(std::make_unique<Impl>()) {}
TreeDigest::TreeDigest(TreeDigest&&) noexcept = default;
TreeDigest& TreeDigest::operator=(TreeDigest&&) noexcept = default;
TreeDigest::~TreeDigest() = default;

void TreeDigest::update(const void* data, std::size_t bytes) {
  if (bytes == 0) return;  // `data` may be null
  const auto* from = static_cast<const std::byte*>(data);
  impl_->length += bytes;
  if (impl_->block_bytes > 0) {
    const std::size_t part = std::min(bytes, kLeafBytes - impl_->block_bytes);
    std::memcpy(impl_->block.data() + impl_->block_bytes, from, part);
    impl_->block_bytes += part;
    from += part;
    bytes -= part;
    if (impl_->block_bytes < kLeafBytes) return;
    impl_->add_leaf(impl_->block.data(), kLeafBytes);
    impl_->block_bytes = 0;
  }
  while (bytes >= kLeafBytes) {
    const std::size_t hashed = impl_->add_leaves(from, bytes / kLeafBytes) * kLeafBytes;
    from += hashed;
    bytes -= hashed;
  }
  if (bytes > 0) std::memcpy(impl_->block.data(), from, bytes);
  impl_->block_bytes = bytes;
}

Digest TreeDigest::finish() {
  if (impl_->block_bytes > 0) impl_->add_leaf(impl_->block.data(), impl_->block_bytes);
  impl_->flush_leaves();
  return finish_root(impl_->root, impl_->length);
}

Digest canonical(std::uint64_t high, std::uint64_t low) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, {.low64 = low, .high64 = high});
  Digest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest.bytes));
  std::memcpy(digest.bytes.data(), canonical.digest, digest.bytes.size());
  return digest;
}

Digest root_of(std::span<const std::uint64_t> leaves, std::uint64_t bytes) {
  XXH3_state_t root;
  XXH3_128bits_reset(&root);
  XXH3_128bits_update(&root, leaves.data(), leaves.size_bytes());
  return finish_root(root, bytes);
}

Digest digest_of(const void* data, std::size_t bytes) {
  TreeDigest tree;
  tree.update(data, bytes);
  return tree.finish();
}

Digest digest_of(const void* data, std::size_t bytes, unsigned threads) {
  const auto* from = static_cast<const std::byte*>(data);
  const std::size_t whole = bytes / kLeafBytes;
  std::vector<std::uint64_t> leaves((bytes + kLeafBytes - 1) / kLeafBytes);
  {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) {
      const std::size_t first = whole * i / threads;
      const std::size_t end = whole * (i + 1) / threads;
      workers.emplace_back([=, out = leaves.data() + first] {
        hash_leaves(from + first * kLeafBytes, end - first, out);
      });
    }
  }
  if (leaves.size() > whole) {
    leaves.back() = little_endian(XXH3_64bits(from + whole * kLeafBytes, bytes % kLeafBytes));
  }
  return root_of(leaves, bytes);
}

}  // namespace savegate::gpu
