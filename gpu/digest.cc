#include "gpu/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

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
  for (; bytes >= kLeafBytes; from += kLeafBytes, bytes -= kLeafBytes) {
    impl_->add_leaf(from, kLeafBytes);
  }
  if (bytes > 0) std::memcpy(impl_->block.data(), from, bytes);
  impl_->block_bytes = bytes;
}

Digest TreeDigest::finish() {
  if (impl_->block_bytes > 0) impl_->add_leaf(impl_->block.data(), impl_->block_bytes);
  impl_->flush_leaves();
  const std::uint64_t length = little_endian(impl_->length);
  XXH3_128bits_update(&impl_->root, &length, sizeof(length));
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&impl_->root));
  Digest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest.bytes));
  std::memcpy(digest.bytes.data(), canonical.digest, digest.bytes.size());
  return digest;
}

Digest digest_of(const void* data, std::size_t bytes) {
  TreeDigest tree;
  tree.update(data, bytes);
  return tree.finish();
}

}  // namespace savegate::gpu
