// RuleIndex: which of a thousand rules an operation concerns, found by their keys and not one by
// one.
//
// For every value that a key can have (this operation, this rank, offsets between these two edges,
// this phase) there is the set of rules that do not mind it. Their intersection is what is left to
// look at, in the order of the plan; on most operations it is empty. Rules that can never act again
// (a `once` that was taken, an `nth` that is past) leave the sets for good, and are no longer
// counted.
//
// Thread-safe. What depends on a rank's phase or on the time since its marks is kept with the rank
// and made anew when its phase changed or a `since` begins or ends. A thread that reads while
// another makes it anew sees some rules before the change and some after it, as if it had come
// between them.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "faults/phases.h"
#include "faults/rank_table.h"
#include "faults/rule_set.h"
#include "faults/rule_state.h"

namespace savegate::faults {

// The rules whose range holds a value, by the edges of all ranges.
class RangeIndex {
 public:
  using RangeOf = const std::optional<Range>& (*)(const Match&);
  RangeIndex(const std::deque<RuleState>& rules, RangeOf range_of);
  bool used() const { return !edges_.empty(); }
  const RuleSet& of(std::uint64_t value) const;

 private:
  std::vector<std::uint64_t> edges_;
  std::vector<RuleSet> sets_;  // before the first edge, between the first and the second, …
};

class RuleIndex {
 public:
  // The rules must stay where they are. Those of other lives are left out.
  RuleIndex(const std::deque<RuleState>& rules, int life);

  // What could act on a file of this name.
  struct Named {
    std::uint64_t ops = 0;
    bool keeps_unsynced = false;
    bool keeps_past = false;
    RuleSet rules;
  };
  Named named(std::string_view path, const Classified& file) const;

  // Calls act(rule) for those of the file's rules that the operation may concern, in the order of
  // the plan. All keys but `phase` hold for sure.
  template <class Act>
  void each(const Operation& operation, const RuleSet& of_file, const Phases& phases, Act act);

  // A mark of the rank: `since` counts from it.
  void marked(int rank, std::string_view name, const Phase& phase, std::uint64_t now_ns);

  void finish(std::uint32_t rule) { live_.remove(rule); }
  void finish(std::uint32_t rule, int rank) { of_rank(rank).rules.remove(rule); }

 private:
  struct OfRank {
    OfRank(int rank, const std::deque<RuleState>& rules);

    RuleSet rules;  // that ask for this rank or for none, and that are not over for it
    std::mutex mutex;
    // When each rule's `since` mark came last; 0: never. By number of rule.
    std::vector<std::atomic<std::uint64_t>> marked_at;
    // The rules whose phase and `since` hold, as long as the three below say so.
    RuleSet now;
    std::atomic<std::uint64_t> phase_serial{UINT64_MAX};
    std::atomic<std::uint64_t> from_ns{0};
    std::atomic<std::uint64_t> until_ns{0};
  };
  struct NameClass {  // rules that ask the same of the name
    Glob path;
    std::optional<Role> role;
    std::optional<bool> temporary;
    Named named;
  };

  OfRank& of_rank(int rank) { return ranks_.of(rank, rules_); }
  const RuleSet& holding_now(OfRank& rank, const Operation& operation, const Phases& phases);
  void refresh(OfRank& rank, const Operation& operation, const Phases& phases);
  bool since_holds(const OfRank& rank, std::uint32_t rule, std::uint64_t now_ns) const;

  const std::deque<RuleState>& rules_;
  std::vector<NameClass> names_;
  std::array<RuleSet, kOpCount> by_op_;
  std::array<RuleSet, 4> by_relation_;
  const RangeIndex by_offset_;
  const RangeIndex by_size_;
  RuleSet live_;
  RankTable<OfRank> ranks_;
  std::vector<std::uint32_t> phased_;  // rules that ask for a phase, an attempt or a `since`
  std::vector<std::uint32_t> since_;   // those of them with a `since`
};

template <class Act>
void RuleIndex::each(const Operation& operation, const RuleSet& of_file, const Phases& phases,
                     Act act) {
  OfRank& rank = of_rank(operation.caller.rank);
  std::array<const RuleSet*, 8> sets = {
      &of_file, &by_op_.at(static_cast<std::size_t>(operation.op)), &rank.rules, &live_,
      &by_relation_.at(static_cast<std::size_t>(operation.caller.relation))};
  std::size_t count = 5;
  if (by_offset_.used()) sets.at(count++) = &by_offset_.of(operation.offset);
  if (by_size_.used()) sets.at(count++) = &by_size_.of(operation.length);
  // The phase of a mark is not the rank's but the mark's own.
  const bool by_phase = !phased_.empty() && operation.op != Op::kPhase;
  if (by_phase) sets.at(count++) = &holding_now(rank, operation, phases);
  for (std::size_t i = 0; i < of_file.size(); ++i) {
    std::uint64_t word = sets[0]->word(i);
    for (std::size_t set = 1; set < count && word != 0; ++set) word &= sets.at(set)->word(i);
    for (; word != 0; word &= word - 1) {
      const auto rule =
          static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(word));
      if (since_.empty() || since_holds(rank, rule, operation.now_ns)) act(rule);
    }
  }
}

}  // namespace savegate::faults
