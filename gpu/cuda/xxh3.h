// The parts of XXH3 (seed 0) that a kernel puts together: constants, the steps of the long hash,
// and whole hashes of up to 240 bytes. Also compiled for the host, where they are held to the
// library.
//
// The long hash keeps eight accumulators. A block of 16 stripes of 64 bytes adds to them, in any
// order; a scramble after each block chains the blocks. So blocks can be summed by as many threads
// as there are, and only the scrambles follow one another.
#pragma once

#include <cstdint>

#include "gpu/cuda/host_device.h"

namespace savegate::gpu::xxh3 {

using Byte = std::uint8_t;
using Word = std::uint64_t;

inline constexpr Word kPrime32_1 = 0x9E3779B1U;
inline constexpr Word kPrime32_2 = 0x85EBCA77U;
inline constexpr Word kPrime32_3 = 0xC2B2AE3DU;
inline constexpr Word kPrime64_1 = 0x9E3779B185EBCA87ULL;
inline constexpr Word kPrime64_2 = 0xC2B2AE3D27D4EB4FULL;
inline constexpr Word kPrime64_3 = 0x165667B19E3779F9ULL;
inline constexpr Word kPrime64_4 = 0x85EBCA77C2B2AE63ULL;
inline constexpr Word kPrime64_5 = 0x27D4EB2F165667C5ULL;

inline constexpr std::uint64_t kSecretBytes = 192;
inline constexpr std::uint64_t kStripeBytes = 64;
inline constexpr std::uint64_t kBlockBytes = 1024;
inline constexpr std::uint64_t kShortBytes = 240;      // longer input takes the long hash
inline constexpr std::uint64_t kScrambleSecret = 128;  // offsets into the secret
inline constexpr std::uint64_t kLastStripeSecret = 121;
inline constexpr std::uint64_t kLowMergeSecret = 11;
inline constexpr std::uint64_t kHighMergeSecret = 117;

// The default secret, as 24 little-endian words.
#define SAVEGATE_XXH3_SECRET                                                                      \
  0xbe4ba423396cfeb8ULL, 0x1cad21f72c81017cULL, 0xdb979083e96dd4deULL, 0x1f67b3b7a4a44072ULL,     \
      0x78e5c0cc4ee679cbULL, 0x2172ffcc7dd05a82ULL, 0x8e2443f7744608b8ULL, 0x4c263a81e69035e0ULL, \
      0xcb00c391bb52283cULL, 0xa32e531b8b65d088ULL, 0x4ef90da297486471ULL, 0xd8acdea946ef1938ULL, \
      0x3f349ce33f76faa8ULL, 0x1d4f0bc7c7bbdcf9ULL, 0x3159b4cd4be0518aULL, 0x647378d9c97e9fc8ULL, \
      0xc3ebd33483acc5eaULL, 0xeb6313faffa081c5ULL, 0x49daf0b751dd0d17ULL, 0x9e68d429265516d3ULL, \
      0xfca1477d58be162bULL, 0xce31d07ad1b8f88fULL, 0x280416958f3acb45ULL, 0x7e404bbbcafbd7afULL

// A word at any offset and alignment, little endian.
SAVEGATE_HOST_DEVICE inline Word word_at(const Byte* at) {
  Word word = 0;
  for (int i = 7; i >= 0; --i) word = word << 8 | at[i];
  return word;
}
SAVEGATE_HOST_DEVICE inline Word half_word_at(const Byte* at) {
  return Word{at[0]} | Word{at[1]} << 8 | Word{at[2]} << 16 | Word{at[3]} << 24;
}

// The first accumulators.
SAVEGATE_HOST_DEVICE inline Word initial(unsigned lane) {
  switch (lane) {
    case 0:
      return kPrime32_3;
    case 1:
      return kPrime64_1;
    case 2:
      return kPrime64_2;
    case 3:
      return kPrime64_3;
    case 4:
      return kPrime64_4;
    case 5:
      return kPrime32_2;
    case 6:
      return kPrime64_5;
    default:
      return kPrime32_1;
  }
}

// What a word adds to its own accumulator; the word itself is added to its neighbour's.
SAVEGATE_HOST_DEVICE inline Word product(Word word, Word secret) {
  const Word keyed = word ^ secret;
  return (keyed & 0xffffffffU) * (keyed >> 32);
}

SAVEGATE_HOST_DEVICE inline Word scramble(Word accumulator, Word secret) {
  return (accumulator ^ accumulator >> 47 ^ secret) * kPrime32_1;
}

SAVEGATE_HOST_DEVICE inline Word fold(Word a, Word b) {
#if defined(__CUDA_ARCH__)
  return a * b ^ __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  const Wide wide = static_cast<Wide>(a) * b;
  return static_cast<Word>(wide) ^ static_cast<Word>(wide >> 64);
#endif
}

SAVEGATE_HOST_DEVICE inline Word avalanche(Word hash) {
  hash = (hash ^ hash >> 37) * 0x165667919E3779F9ULL;
  return hash ^ hash >> 32;
}

SAVEGATE_HOST_DEVICE inline Word rotate_left(Word word, int by) {
  return word << by | word >> (64 - by);
}

SAVEGATE_HOST_DEVICE inline Word swap_bytes(Word word) {
  Word swapped = 0;
  for (int i = 0; i < 8; ++i) swapped = swapped << 8 | (word >> (8 * i) & 0xff);
  return swapped;
}

SAVEGATE_HOST_DEVICE inline Word mix_16(const Byte* at, const Byte* secret) {
  return fold(word_at(at) ^ word_at(secret), word_at(at + 8) ^ word_at(secret + 8));
}

SAVEGATE_HOST_DEVICE inline Word hash_up_to_16(const Byte* at, std::uint64_t bytes,
                                               const Byte* secret) {
  if (bytes > 8) {
    const Word low = word_at(at) ^ (word_at(secret + 24) ^ word_at(secret + 32));
    const Word high = word_at(at + bytes - 8) ^ (word_at(secret + 40) ^ word_at(secret + 48));
    return avalanche(bytes + swap_bytes(low) + high + fold(low, high));
  }
  if (bytes >= 4) {
    const Word both = half_word_at(at + bytes - 4) + (half_word_at(at) << 32);
    Word hash = both ^ (word_at(secret + 8) ^ word_at(secret + 16));
    hash ^= rotate_left(hash, 49) ^ rotate_left(hash, 24);
    hash *= 0x9FB21C651E98DF25ULL;
    hash ^= (hash >> 35) + bytes;
    hash *= 0x9FB21C651E98DF25ULL;
    return hash ^ hash >> 28;
  }
  const Word combined =
      Word{at[0]} << 16 | Word{at[bytes >> 1]} << 24 | Word{at[bytes - 1]} | bytes << 8;
  Word hash = combined ^ (half_word_at(secret) ^ half_word_at(secret + 4));
  hash = (hash ^ hash >> 33) * kPrime64_2;
  hash = (hash ^ hash >> 29) * kPrime64_3;
  return hash ^ hash >> 32;
}

// 1 to kShortBytes bytes.
SAVEGATE_HOST_DEVICE inline Word hash_short(const Byte* at, std::uint64_t bytes,
                                            const Byte* secret) {
  if (bytes <= 16) return hash_up_to_16(at, bytes, secret);
  Word sum = bytes * kPrime64_1;
  const std::uint64_t rounds = bytes / 16;
  if (bytes <= 128) {
    for (std::uint64_t i = 0; i <= (bytes - 1) / 32; ++i) {
      sum += mix_16(at + 16 * i, secret + 32 * i);
      sum += mix_16(at + bytes - 16 * (i + 1), secret + 32 * i + 16);
    }
    return avalanche(sum);
  }
  for (std::uint64_t i = 0; i < 8; ++i) sum += mix_16(at + 16 * i, secret + 16 * i);
  sum = avalanche(sum);
  for (std::uint64_t i = 8; i < rounds; ++i) sum += mix_16(at + 16 * i, secret + 16 * (i - 8) + 3);
  return avalanche(sum + mix_16(at + bytes - 16, secret + 136 - 17));
}

}  // namespace savegate::gpu::xxh3
