#include "harness/oracles/shard_claims.h"

#include <fmt/format.h>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;
using ShardClaims = std::vector<std::pair<int, const Item*>>;  // (rank, slice) of one key

constexpr std::size_t kLinesKept = 8;

bool overlap(const Item& a, const Item& b) {
  const std::size_t dimensions = a.local_shape.size();
  if (b.local_shape.size() != dimensions || a.offset.size() != dimensions ||
      b.offset.size() != dimensions) {
    return true;  // one key for things that cannot be slices of the same
  }
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (a.offset[i] + a.local_shape[i] <= b.offset[i] ||
        b.offset[i] + b.local_shape[i] <= a.offset[i]) {
      return false;
    }
  }
  return true;
}

// The same slice with the same bytes on two ranks is a replica, whoever writes it.
bool collide(const Item& a, const Item& b) {
  if (a.bytes == 0 || b.bytes == 0) return false;
  if (a.global_shape != b.global_shape) return true;
  if (!overlap(a, b)) return false;
  return a.digest != b.digest || a.offset != b.offset || a.local_shape != b.local_shape;
}

std::string described(int rank, const Item& item) {
  return fmt::format("rank {} `{}` offset [{}] shape [{}] of [{}], digest {}", rank, item.name,
                     fmt::join(item.offset, ","), fmt::join(item.local_shape, ","),
                     fmt::join(item.global_shape, ","), item.digest);
}

class Slices {
 public:
  void add(int rank, const Item& item) {
    if (item.scope == "shard" && !item.name.empty()) claims_[item.name].emplace_back(rank, &item);
  }

  // Returns the number of keys that several ranks hold slices of.
  std::size_t check(const std::string& where, Lines& lines) const {
    std::size_t shared = 0;
    for (const auto& [name, claims] : claims_) {
      if (claims.front().first == claims.back().first) continue;
      ++shared;
      check_key(claims, where, lines);
    }
    return shared;
  }

 private:
  static void check_key(const ShardClaims& claims, const std::string& where, Lines& lines) {
    for (std::size_t i = 0; i < claims.size(); ++i) {
      for (std::size_t j = i + 1; j < claims.size(); ++j) {
        const auto& [rank_a, a] = claims[i];
        const auto& [rank_b, b] = claims[j];
        if (rank_a == rank_b || lines.size() >= kLinesKept || !collide(*a, *b)) continue;
        lines.push_back(
            fmt::format("{}: {} and {}", where, described(rank_a, *a), described(rank_b, *b)));
      }
    }
  }

  std::map<std::string, ShardClaims> claims_;  // ranks in ascending order
};

}  // namespace

reports::Verdict disjoint_slices(const Evidence& evidence) {
  const View view(evidence);
  std::size_t keys = 0;
  std::size_t sets = 0;
  Lines lines;
  const auto judge = [&](const Slices& slices, const std::string& where) {
    const std::size_t shared = slices.check(where, lines);
    keys += shared;
    sets += shared > 0 ? 1 : 0;
  };
  for (const SaveGroup& group : view.groups()) {
    Slices slices;
    for (const SaveCall& call : group.calls) {
      for (const Item& item : call.begin->items) slices.add(call.rank, item);
    }
    judge(slices, fmt::format("life {} save of step {}", group.life->record.number, group.step));
  }
  for (const Life& life : evidence.lives) {
    for (const Checkpoint& checkpoint : life.checkpoints) {
      if (!checkpoint.complete) continue;
      Slices slices;
      for (const auto& [rank, item] : checkpoint.items) slices.add(rank, item);
      judge(slices, fmt::format("after life {}: {}", life.record.number, checkpoint.path));
    }
  }
  if (!lines.empty()) {
    return violated("F5", "two ranks hold different bytes under the same key and range",
                    std::move(lines));
  }
  if (keys == 0) return skip("F5", "no key is sliced over several ranks");
  return pass(
      "F5", fmt::format("the slices of {} keys in {} saves and readings are disjoint", keys, sets));
}

}  // namespace savegate::harness
