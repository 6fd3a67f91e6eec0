// The tree digest of many tensors in one launch.
//
// The work is cut into units of eight leaves. A warp takes every so many of them, alone: it copies
// leaves into its ring of shared memory some way ahead, hashes one after another, each lane 16
// bytes of every 512 (those that it copied itself, so that nothing is waited for but the copy), and
// adds the unit to the root's block.
//
// A root is a chain of its blocks, by a warp of its own that keeps pace with the leaves: it waits
// for blocks in their order, which is about the order of the work, so that only a short end of the
// chain is left when the last leaf is hashed.
//
// A tensor of at most kShortLeaves leaves has its leaves in its slot of the results instead of a
// root: that is a hash of up to 240 bytes, which the host does.
#pragma once

#include "gpu/cuda/digest_plan.h"
#include "gpu/cuda/xxh3.h"
#if defined(__CUDACC__)
#include "gpu/cuda/device_primitives.cuh"
#endif

namespace savegate::gpu::cuda {

using xxh3::Byte;
using xxh3::Word;

__constant__ Word digest_secret[] = {SAVEGATE_XXH3_SECRET};

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kEveryLane = 0xffffffffU;
inline constexpr unsigned kPieces = kLeafBytes / 512;  // of 16 bytes that a lane has of a leaf

struct alignas(16) Piece {
  Word low;
  Word high;
};

__device__ inline Word secret_word(unsigned index) { return digest_secret[index]; }
__device__ inline const Byte* secret_bytes() {
  return reinterpret_cast<const Byte*>(digest_secret);
}
__device__ inline Word sum_over(Word value, unsigned lane_bit) {
  return value + __shfl_xor_sync(kEveryLane, value, lane_bit);
}

// By value: registers have no address.
__device__ inline Piece choose(bool first, const Piece& a, const Piece& b) {
  return {first ? a.low : b.low, first ? a.high : b.high};
}

// 16 bytes, with the widest loads that `alignment` allows.
__device__ inline Piece load_piece(const Byte* at, unsigned alignment) {
  if (alignment == 16) {
    const ulonglong2 both = __ldcs(reinterpret_cast<const ulonglong2*>(at));
    return {both.x, both.y};
  }
  if (alignment == 4) {
    const auto* words = reinterpret_cast<const unsigned*>(at);
    return {words[0] | Word{words[1]} << 32, words[2] | Word{words[3]} << 32};
  }
  return {xxh3::word_at(at), xxh3::word_at(at + 8)};
}

// The secrets of the stripes that a lane works on. Lane l has sixteen bytes of stripes l / 4 and
// l / 4 + 8 of each block, those of accumulators 2 (l % 4) and the next.
struct LaneSecrets {
  Piece first;
  Piece second;
  Piece last;  // of a whole leaf's last stripe, in place of `second`

  __device__ explicit LaneSecrets(unsigned lane) {
    const unsigned word = lane / 4 + 2 * (lane % 4);
    first = {secret_word(word), secret_word(word + 1)};
    second = {secret_word(word + 8), secret_word(word + 9)};
    const Byte* at = secret_bytes() + xxh3::kLastStripeSecret + 16 * (lane % 4);
    last = lane / 4 == 7 ? Piece{xxh3::word_at(at), xxh3::word_at(at + 8)} : second;
  }
};

__device__ inline void accumulate(Piece& sum, const Piece& data, const Piece& secret) {
  sum.low += data.high + xxh3::product(data.low, secret.low);
  sum.high += data.low + xxh3::product(data.high, secret.high);
}

__device__ inline Piece scramble(const Piece& sum, unsigned lane) {
  const unsigned word = xxh3::kScrambleSecret / 8 + 2 * (lane % 4);
  return {xxh3::scramble(sum.low, secret_word(word)),
          xxh3::scramble(sum.high, secret_word(word + 1))};
}

__device__ inline Piece initial(unsigned lane) {
  return {xxh3::initial(2 * (lane % 4)), xxh3::initial(2 * (lane % 4) + 1)};
}

// The hash from the accumulators, two of which each lane has.
__device__ inline Word merge(const Piece& sum, std::uint64_t bytes, unsigned lane) {
  const Byte* secret = secret_bytes() + xxh3::kLowMergeSecret + 16 * (lane % 4);
  Word folded = xxh3::fold(sum.low ^ xxh3::word_at(secret), sum.high ^ xxh3::word_at(secret + 8));
  folded = sum_over(sum_over(folded, 1), 2);
  return xxh3::avalanche(bytes * xxh3::kPrime64_1 + folded);
}

// A whole leaf that lies aligned, in the lanes' registers. The four blocks' sums are spread over
// the lanes as they are added up, then chained.
__device__ inline Word hash_whole_leaf(const Piece (&data)[kPieces], const LaneSecrets& secrets,
                                       unsigned lane) {
  Piece sums[4];
  SAVEGATE_UNROLL
  for (unsigned block = 0; block < 4; ++block) {
    sums[block] = {0, 0};
    accumulate(sums[block], data[2 * block], secrets.first);
    accumulate(sums[block], data[2 * block + 1], block == 3 ? secrets.last : secrets.second);
  }
  // Lanes with bit 4 go on with blocks 2 and 3, those without with 0 and 1; then by bit 3.
  Piece halves[2];
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    const bool upper = (lane & 16) != 0;
    const Piece given = choose(upper, sums[i], sums[i + 2]);
    const Piece kept = choose(upper, sums[i + 2], sums[i]);
    halves[i] = {kept.low + __shfl_xor_sync(kEveryLane, given.low, 16),
                 kept.high + __shfl_xor_sync(kEveryLane, given.high, 16)};
  }
  const bool odd = (lane & 8) != 0;
  const Piece given = choose(odd, halves[0], halves[1]);
  const Piece kept = choose(odd, halves[1], halves[0]);
  Piece own = {kept.low + __shfl_xor_sync(kEveryLane, given.low, 8),
               kept.high + __shfl_xor_sync(kEveryLane, given.high, 8)};
  own = {sum_over(own.low, 4), sum_over(own.high, 4)};

  Piece sum = initial(lane);
  SAVEGATE_UNROLL
  for (unsigned block = 0; block < 4; ++block) {
    const unsigned owner = 8 * block + lane % 4;
    sum.low += __shfl_sync(kEveryLane, own.low, owner);
    sum.high += __shfl_sync(kEveryLane, own.high, owner);
    if (block < 3) sum = scramble(sum, lane);
  }
  return merge(sum, kLeafBytes, lane);
}

// Any leaf, by a whole warp.
static __device__ __noinline__ Word hash_any_leaf(const Byte* at, std::uint64_t bytes,
                                                  unsigned alignment) {
  const unsigned lane = threadIdx.x % kWarp;
  if (bytes <= xxh3::kShortBytes) {
    Word hash = 0;
    if (lane == 0) hash = xxh3::hash_short(at, bytes, secret_bytes());
    return __shfl_sync(kEveryLane, hash, 0);
  }
  const LaneSecrets secrets(lane);
  const std::uint64_t stripes = (bytes - 1) / xxh3::kStripeBytes;  // before the last one
  const std::uint64_t blocks = (bytes - 1) / xxh3::kBlockBytes;    // that a scramble follows
  Piece sum = initial(lane);
  for (std::uint64_t block = 0; block <= blocks; ++block) {
    Piece added = {0, 0};
    for (unsigned half = 0; half < 2; ++half) {
      const std::uint64_t stripe = 16 * block + 8 * half + lane / 4;
      if (stripe >= stripes) continue;
      const Byte* from = at + stripe * xxh3::kStripeBytes + 16 * (lane % 4);
      accumulate(added, load_piece(from, alignment), half == 0 ? secrets.first : secrets.second);
    }
    if (block == blocks && lane / 4 == 7) {  // the last stripe, wherever it begins
      const Byte* from = at + bytes - xxh3::kStripeBytes + 16 * (lane % 4);
      accumulate(added, load_piece(from, 1), secrets.last);
    }
    for (unsigned bit = 4; bit < kWarp; bit *= 2) {
      added = {sum_over(added.low, bit), sum_over(added.high, bit)};
    }
    sum = {sum.low + added.low, sum.high + added.high};
    if (block < blocks) sum = scramble(sum, lane);
  }
  return merge(sum, bytes, lane);
}

// The tensor that a unit belongs to.
__device__ inline std::uint32_t tensor_of(const DigestPlan& plan, std::uint64_t unit) {
  std::uint32_t low = 0;
  std::uint32_t high = plan.count - 1;
  while (low < high) {
    const std::uint32_t middle = (low + high + 1) / 2;
    if (plan.tensors[middle].first_unit <= unit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The leaves of a warp's units, one after another.
class LeafCursor {
 public:
  __device__ LeafCursor(const DigestPlan& plan, std::uint64_t unit, std::uint64_t stride)
      : plan_(plan), stride_(stride) {
    enter(unit);
  }

  __device__ bool there() const { return unit_ < plan_.units; }
  __device__ std::uint64_t unit() const { return unit_; }
  __device__ std::uint32_t index() const { return index_; }
  __device__ const DigestTensor& tensor() const { return plan_.tensors[index_]; }
  __device__ unsigned in_unit() const { return in_unit_; }
  __device__ unsigned unit_leaves() const { return unit_leaves_; }
  __device__ const Byte* data() const { return data_; }
  __device__ unsigned bytes() const {
    return static_cast<unsigned>(left_ < kLeafBytes ? left_ : kLeafBytes);
  }
  __device__ unsigned alignment() const { return alignment_; }
  // Is copied ahead.
  __device__ bool whole() const { return left_ >= kLeafBytes && alignment_ == 16; }

  __device__ void advance() {
    if (++in_unit_ == unit_leaves_) {
      enter(unit_ + stride_);
    } else {
      data_ += kLeafBytes;
      left_ -= kLeafBytes;
    }
  }

 private:
  __device__ void enter(std::uint64_t unit) {
    unit_ = unit;
    in_unit_ = 0;
    if (unit >= plan_.units) return;
    index_ = tensor_of(plan_, unit);
    const DigestTensor& tensor = plan_.tensors[index_];
    const std::uint64_t first = (unit - tensor.first_unit) * kUnitLeaves;
    const std::uint64_t leaves = tensor.leaves - first;
    unit_leaves_ = static_cast<unsigned>(leaves < kUnitLeaves ? leaves : kUnitLeaves);
    data_ = tensor.data + first * kLeafBytes;
    left_ = tensor.bytes - first * kLeafBytes;
    alignment_ = tensor.alignment;
  }

  const DigestPlan& plan_;
  std::uint64_t stride_;
  std::uint64_t unit_ = 0;
  const Byte* data_ = nullptr;
  std::uint64_t left_ = 0;  // bytes of the tensor from `data_` on
  std::uint32_t index_ = 0;
  unsigned in_unit_ = 0;
  unsigned unit_leaves_ = 0;
  unsigned alignment_ = 0;
};

// A unit whose leaves are known, lane l's being leaf l, into the root's block; by a whole warp.
__device__ inline void add_unit(const DigestPlan& plan, const LeafCursor& at, Word leaf,
                                unsigned lane) {
  const DigestTensor& tensor = at.tensor();
  const std::uint64_t unit = at.unit() - tensor.first_unit;
  const std::uint64_t first = unit * kUnitLeaves;
  const unsigned count = at.unit_leaves();
  if (tensor.leaves <= kShortLeaves) {
    if (lane < count) plan.slots[at.index()].words[first + lane] = leaf;
    return;
  }
  RootBlock& block = plan.blocks[tensor.first_block + unit / kBlockUnits];
  const unsigned stripe = static_cast<unsigned>(unit % kBlockUnits);
  const Word neighbour = __shfl_xor_sync(kEveryLane, leaf, 1);
  if (count == kUnitLeaves && lane < kUnitLeaves) {  // a whole stripe of the root
    atomicAdd(&block.accumulators[lane],
              static_cast<unsigned long long>(neighbour +
                                              xxh3::product(leaf, secret_word(stripe + lane))));
  }
  // The root's last stripe takes the last seven leaves, be they of this unit or the one before.
  if (lane < count && first + lane + 7 >= tensor.leaves) {
    plan.tails[at.index()].leaves[first + lane + 7 - tensor.leaves] = leaf;
  }
  __syncwarp();
  if (lane == 0) add_released(&block.units, 1U);
}

// A warp's ring of leaves that are on their way.
template <unsigned kStages>
struct LeafRing {
  Piece pieces[kStages][kPieces][kWarp];
};

template <unsigned kStages>
__device__ void hash_units(const DigestPlan& plan, std::uint64_t warp, std::uint64_t warps,
                           LeafRing<kStages>& ring) {
  const unsigned lane = threadIdx.x % kWarp;
  const LaneSecrets secrets(lane);
  LeafCursor ahead(plan, warp, warps);
  LeafCursor now(plan, warp, warps);
  // Each stage is a group of copies, an empty one where there is nothing to copy.
  const auto copy_ahead = [&](unsigned stage) {
    if (ahead.there()) {
      if (ahead.whole()) {
        SAVEGATE_UNROLL
        for (unsigned i = 0; i < kPieces; ++i) {
          copy_async(&ring.pieces[stage][i][lane], ahead.data() + 512 * i + 16 * lane);
        }
      }
      ahead.advance();
    }
    end_copies();
  };
  for (unsigned stage = 0; stage + 1 < kStages; ++stage) copy_ahead(stage);
  Word leaves = 0;
  for (unsigned turn = 0; now.there(); ++turn) {
    copy_ahead((turn + kStages - 1) % kStages);
    await_copies<kStages - 1>();
    Word hash = 0;
    if (now.whole()) {
      Piece data[kPieces];
      SAVEGATE_UNROLL
      for (unsigned i = 0; i < kPieces; ++i) data[i] = ring.pieces[turn % kStages][i][lane];
      hash = hash_whole_leaf(data, secrets, lane);
    } else {
      hash = hash_any_leaf(now.data(), now.bytes(), now.alignment());
    }
    if (lane == now.in_unit()) leaves = hash;
    if (now.in_unit() + 1 == now.unit_leaves()) add_unit(plan, now, leaves, lane);
    now.advance();
  }
}

// The root, from the accumulators after the last full stripe; by a whole warp.
__device__ inline void finish_root(const DigestTensor& tensor, const RootTail& tail, Word sum,
                                   DigestSlot& slot, unsigned lane) {
  const unsigned own = lane % 8;
  const auto word = [&](unsigned i) { return i < 7 ? __ldcg(&tail.leaves[i]) : tensor.bytes; };
  const Byte* secret = secret_bytes();
  sum += word(own ^ 1) +
         xxh3::product(word(own), xxh3::word_at(secret + xxh3::kLastStripeSecret + 8 * own));
  const std::uint64_t bytes = 8 * (tensor.leaves + 1);
  const Word neighbour = __shfl_xor_sync(kEveryLane, sum, 1);
  const auto merged = [&](std::uint64_t offset, Word start) {
    const Byte* from = secret + offset + 16 * (own / 2);
    Word folded = xxh3::fold(sum ^ xxh3::word_at(from), neighbour ^ xxh3::word_at(from + 8));
    folded = sum_over(sum_over(folded, 2), 4);
    return xxh3::avalanche(start + folded);
  };
  const Word low = merged(xxh3::kLowMergeSecret, bytes * xxh3::kPrime64_1);
  const Word high = merged(xxh3::kHighMergeSecret, ~(bytes * xxh3::kPrime64_2));
  if (lane == 0) {
    slot.words[0] = low;
    slot.words[1] = high;
  }
}

inline constexpr unsigned kWindow = 64;  // blocks of a root that are looked at together

// How many blocks from `next` on are complete, up to kWindow.
__device__ inline unsigned complete_blocks(const RootBlock* all, std::uint64_t next,
                                           std::uint64_t blocks, std::uint64_t units,
                                           unsigned lane) {
  unsigned complete[kWindow / kWarp];
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kWindow / kWarp; ++i) {
    const std::uint64_t block = next + i * kWarp + lane;
    const std::uint64_t left = units - block * kBlockUnits;  // wraps where there is no such block
    const std::uint64_t expected = left < kBlockUnits ? left : kBlockUnits;
    complete[i] = block < blocks && load_acquired(&all[block].units) == expected ? 1 : 0;
  }
  unsigned count = 0;
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kWindow / kWarp; ++i) {
    const unsigned missing = ~__ballot_sync(kEveryLane, complete[i] != 0);
    if (count == i * kWarp) {
      count += missing == 0 ? kWarp : static_cast<unsigned>(__ffs(missing)) - 1;
    }
  }
  return count;
}

// The root of a tensor, as its blocks become complete; by a whole warp.
__device__ inline void chain_root(const DigestPlan& plan, std::uint32_t index, unsigned lane) {
  const DigestTensor& tensor = plan.tensors[index];
  const std::uint64_t units = units_of(tensor.leaves);
  const std::uint64_t blocks = blocks_of(tensor.leaves);
  const std::uint64_t whole_blocks = tensor.leaves / (kUnitLeaves * kBlockUnits);
  const RootBlock* all = plan.blocks + tensor.first_block;
  const Word secret = secret_word(xxh3::kScrambleSecret / 8 + lane % 8);
  Word sum = xxh3::initial(lane % 8);
  for (std::uint64_t next = 0; next < blocks;) {
    const unsigned count = complete_blocks(all, next, blocks, units, lane);
    if (count == 0) {
      let_others_run();
      continue;
    }
    Word loaded[kWindow / 4];  // four blocks each, all on their way at once
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < kWindow / 4; ++i) {
      const unsigned block = 4 * i + lane / 8;
      loaded[i] = block < count ? __ldcg(&all[next + block].accumulators[lane % 8]) : 0;
    }
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < kWindow; ++i) {
      if (i >= count) break;
      sum += __shfl_sync(kEveryLane, loaded[i / 4], 8 * (i % 4) + lane % 8);
      if (next + i < whole_blocks) sum = xxh3::scramble(sum, secret);
    }
    next += count;
  }
  finish_root(tensor, plan.tails[index], sum, plan.slots[index], lane);
}

template <unsigned kWarps, unsigned kStages>
__device__ void digest_tensors(const DigestPlan& plan, LeafRing<kStages>* rings) {
  const unsigned warp = threadIdx.x / kWarp;
  if (blockIdx.x < plan.root_blocks) {
    for (std::uint32_t i = blockIdx.x * kWarps + warp; i < plan.count;
         i += plan.root_blocks * kWarps) {
      if (plan.tensors[i].leaves > kShortLeaves) chain_root(plan, i, threadIdx.x % kWarp);
    }
    return;
  }
  const std::uint64_t block = blockIdx.x - plan.root_blocks;
  const std::uint64_t blocks = gridDim.x - plan.root_blocks;
  hash_units<kStages>(plan, block * kWarps + warp, blocks * kWarps, rings[warp]);
}

}  // namespace savegate::gpu::cuda
