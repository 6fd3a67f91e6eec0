// The tree digest of many tensors in one launch.
//
// The work is cut into units of eight leaves. A warp takes every so many of them, alone: it copies
// leaves into its ring of shared memory some way ahead and sums up one after another, each lane all
// that goes to two accumulators of half a block. What is a chain, from the sums of a leaf's blocks
// to its hash, is done for the eight leaves of a unit at once; then the unit is added to the root's
// block.
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
inline constexpr unsigned kLeafPieces = kLeafBytes / 16;

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

// A lane's part of a whole leaf: of block lane / 8, the eight stripes of half lane / 4 % 2, what
// goes to accumulators 2 (lane % 4) and the next.
class LeafPart {
 public:
  __device__ explicit LeafPart(unsigned lane) : half_(lane / 4 % 2) {
    const unsigned pair = lane % 4;
    const unsigned first = (lane / 8 * 16 + 8 * half_) * 4 + pair;
    even_ = first + 4 * half_;
    odd_ = first - 4 * half_;
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned stripe = 8 * half_ + (i ^ half_);
      secrets_[i] = {secret_word(stripe + 2 * pair), secret_word(stripe + 2 * pair + 1)};
      if (lane / 8 == 3 && stripe == 15) {  // the leaf's last one
        const Byte* at = secret_bytes() + xxh3::kLastStripeSecret + 16 * pair;
        secrets_[i] = {xxh3::word_at(at), xxh3::word_at(at + 8)};
      }
    }
  }

  // What this lane's block adds to accumulator 2 (lane % 4) + half, of a leaf in shared memory.
  __device__ Word sum(const Piece* leaf) const {
    Piece added = {0, 0};
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < 8; ++i) {
      accumulate(added, leaf[(i % 2 == 0 ? even_ : odd_) + 4 * i], secrets_[i]);
    }
    const Word given = half_ == 0 ? added.high : added.low;
    const Word kept = half_ == 0 ? added.low : added.high;
    return kept + __shfl_xor_sync(kEveryLane, given, 4);
  }

 private:
  unsigned half_;
  // Where the stripes are. The upper half takes each two of its stripes in the other order: so the
  // loads of both halves meet no bank twice.
  unsigned even_;
  unsigned odd_;
  Piece secrets_[8];  // of the stripes, in the order that they are taken in
};

// The sums of a unit's leaves: of each leaf four blocks of eight accumulators.
using UnitSums = Word[kUnitLeaves][kWarp];

// Where a lane's sum stands among those of its leaf.
__device__ inline unsigned place_of_sum(unsigned lane) {
  return lane / 8 * 8 + 2 * (lane % 4) + lane / 4 % 2;
}

// The hashes of a unit's whole leaves, from their sums: lane l's is leaf l / 4.
__device__ inline Word hash_sums(const UnitSums& sums, unsigned lane) {
  const Word* own = &sums[lane / 4][2 * (lane % 4)];
  Piece sum = initial(lane);
  SAVEGATE_UNROLL
  for (unsigned block = 0; block < 4; ++block) {
    sum.low += own[8 * block];
    sum.high += own[8 * block + 1];
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
  const std::uint64_t block = tensor.first_block + unit / kBlockUnits;
  const unsigned stripe = static_cast<unsigned>(unit % kBlockUnits);
  const Word neighbour = __shfl_xor_sync(kEveryLane, leaf, 1);
  if (count == kUnitLeaves && lane < kUnitLeaves) {  // a whole stripe of the root
    atomicAdd(&plan.blocks[block].accumulators[lane],
              static_cast<unsigned long long>(neighbour +
                                              xxh3::product(leaf, secret_word(stripe + lane))));
  }
  // The root's last stripe takes the last seven leaves, be they of this unit or the one before.
  if (lane < count && first + lane + 7 >= tensor.leaves) {
    plan.tails[at.index()].leaves[first + lane + 7 - tensor.leaves] = leaf;
  }
  __syncwarp();
  if (lane == 0) add_released(&plan.block_units[block], 1U);
}

// A warp's ring of leaves that are on their way, and the sums of the unit at hand.
template <unsigned kStages>
struct LeafRing {
  Piece pieces[kStages][kLeafPieces];
  UnitSums sums;
};

template <unsigned kStages>
__device__ void hash_units(const DigestPlan& plan, std::uint64_t warp, std::uint64_t warps,
                           LeafRing<kStages>& ring) {
  const unsigned lane = threadIdx.x % kWarp;
  const LeafPart part(lane);
  LeafCursor ahead(plan, warp, warps);
  LeafCursor now(plan, warp, warps);
  // Each stage is a group of copies, an empty one where there is nothing to copy.
  const auto copy_ahead = [&](unsigned stage) {
    if (ahead.there()) {
      if (ahead.whole()) {
        SAVEGATE_UNROLL
        for (unsigned i = 0; i < kLeafPieces; i += kWarp) {
          copy_async(&ring.pieces[stage][i + lane], ahead.data() + 16 * (i + lane));
        }
      }
      ahead.advance();
    }
    end_copies();
  };
  for (unsigned stage = 0; stage + 1 < kStages; ++stage) copy_ahead(stage);
  Word other = 0;       // the hash of this lane's leaf of the unit, if it is not whole
  unsigned wholes = 0;  // leaves of the unit, the first ones
  for (unsigned turn = 0; now.there(); ++turn) {
    await_copies<kStages - 2>();
    __syncwarp();  // this leaf is there for all lanes, and all are done with the one before
    copy_ahead((turn + kStages - 1) % kStages);
    if (now.whole()) {
      ring.sums[now.in_unit()][place_of_sum(lane)] = part.sum(ring.pieces[turn % kStages]);
      ++wholes;
    } else {
      const Word hash = hash_any_leaf(now.data(), now.bytes(), now.alignment());
      if (lane == now.in_unit()) other = hash;
    }
    if (now.in_unit() + 1 == now.unit_leaves()) {
      Word leaf = other;
      if (wholes > 0) {
        __syncwarp();
        const Word hash = __shfl_sync(kEveryLane, hash_sums(ring.sums, lane), 4 * (lane % 8));
        if (lane < wholes) leaf = hash;
        wholes = 0;
      }
      add_unit(plan, now, leaf, lane);
    }
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

inline constexpr unsigned kWindow = 128;  // blocks of a root that are looked at together

// How many blocks from `next` on are complete, up to kWindow.
__device__ inline unsigned complete_blocks(const unsigned* block_units, std::uint64_t next,
                                           std::uint64_t blocks, std::uint64_t units,
                                           unsigned lane) {
  unsigned done[kWindow / kWarp];  // loaded without a branch, all at once
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kWindow / kWarp; ++i) {
    const std::uint64_t block = next + i * kWarp + lane;
    done[i] = load_relaxed(&block_units[block < blocks ? block : blocks - 1]);
  }
  unsigned count = 0;
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kWindow / kWarp; ++i) {
    const std::uint64_t block = next + i * kWarp + lane;
    const std::uint64_t left = units - block * kBlockUnits;
    const std::uint64_t expected = left < kBlockUnits ? left : kBlockUnits;
    const unsigned missing = ~__ballot_sync(kEveryLane, block < blocks && done[i] == expected);
    if (count == i * kWarp) {
      count += missing == 0 ? kWarp : static_cast<unsigned>(__ffs(missing)) - 1;
    }
  }
  return count;
}

inline constexpr unsigned kStretch = 16;  // blocks of a window that are chained without a branch

// On with a root's accumulator by up to `count` blocks of a window, the first `whole` of them with
// a scramble. What the blocks add to it is every eighth word of `staged`.
__device__ inline Word chain_stretch(Word sum, const Word* staged, std::uint64_t count,
                                     std::uint64_t whole, Word secret) {
  Word added[kStretch];
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kStretch; ++i) added[i] = staged[8 * i];
  if (whole >= kStretch) {
    sum += added[0];
    SAVEGATE_UNROLL
    for (unsigned i = 1; i < kStretch; ++i) sum = xxh3::scramble(sum, secret) + added[i];
    return xxh3::scramble(sum, secret);
  }
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kStretch; ++i) {
    if (i < count) sum += added[i];
    if (i < whole) sum = xxh3::scramble(sum, secret);
  }
  return sum;
}

// The root of a tensor, as its blocks become complete; by a whole warp. Leaves the blocks zero, as
// they were. `staged` is shared memory for a window of blocks.
__device__ inline void chain_root(const DigestPlan& plan, std::uint32_t index, Word* staged,
                                  unsigned lane) {
  const DigestTensor& tensor = plan.tensors[index];
  const std::uint64_t units = units_of(tensor.leaves);
  const std::uint64_t blocks = blocks_of(tensor.leaves);
  const std::uint64_t whole_blocks = tensor.leaves / (kUnitLeaves * kBlockUnits);
  RootBlock* all = plan.blocks + tensor.first_block;
  unsigned* block_units = plan.block_units + tensor.first_block;
  const Word secret = secret_word(xxh3::kScrambleSecret / 8 + lane % 8);
  Word sum = xxh3::initial(lane % 8);
  unsigned count = 0;
  for (std::uint64_t next = 0; next < blocks;) {
    for (; count == 0; count = complete_blocks(block_units, next, blocks, units, lane))
      let_others_run();
    acquire_loaded();
    __syncwarp();
    for (unsigned i = lane; i < 4 * count; i += kWarp) {
      copy_async(&staged[2 * i], &all[next + i / 4].accumulators[2 * (i % 4)]);
    }
    end_copies();
    // Looked at while the copies are under way: beside all the leaves, either takes microseconds.
    const unsigned following = complete_blocks(block_units, next + count, blocks, units, lane);
    await_copies<0>();
    __syncwarp();
    for (unsigned i = lane; i < 8 * count; i += kWarp) all[next + i / 8].accumulators[i % 8] = 0;
    for (unsigned i = lane; i < count; i += kWarp) block_units[next + i] = 0;
    const std::uint64_t whole = whole_blocks - next < count ? whole_blocks - next : count;
    for (unsigned i = 0; i < count; i += kStretch) {
      sum = chain_stretch(sum, &staged[8 * i + lane % 8], count - i, i < whole ? whole - i : 0,
                          secret);
    }
    next += count;
    count = following;
  }
  finish_root(tensor, plan.tails[index], sum, plan.slots[index], lane);
}

template <unsigned kWarps, unsigned kStages>
__device__ void digest_tensors(const DigestPlan& plan, LeafRing<kStages>* rings) {
  static_assert(sizeof(rings->pieces) >= kWindow * sizeof(RootBlock));
  const unsigned warp = threadIdx.x / kWarp;
  if (blockIdx.x < plan.root_blocks) {
    for (std::uint32_t i = blockIdx.x * kWarps + warp; i < plan.count;
         i += plan.root_blocks * kWarps) {
      if (plan.tensors[i].leaves <= kShortLeaves) continue;
      chain_root(plan, i, reinterpret_cast<Word*>(rings[warp].pieces), threadIdx.x % kWarp);
    }
    return;
  }
  const std::uint64_t block = blockIdx.x - plan.root_blocks;
  const std::uint64_t blocks = gridDim.x - plan.root_blocks;
  hash_units<kStages>(plan, block * kWarps + warp, blocks * kWarps, rings[warp]);
}

}  // namespace savegate::gpu::cuda
