#include "faults/rule_state.h"

#include <algorithm>
#include <utility>

#include "faults/delays.h"
#include "faults/random.h"

namespace savegate::faults {
namespace {

// A mark is matched by its own name or by its place in the span; not by the span alone, which every
// mark within it has in common.
bool matches_mark(const Glob& glob, std::string_view mark, const Phase& phase) {
  if (glob.matches(mark)) return true;
  if (phase.span.empty() || mark == phase.span) return false;
  std::string full = phase.span;
  full += '/';
  full += mark;
  return glob.matches(full);
}

bool is_drawn(const Action& action) {
  const auto* delay = std::get_if<DelayAction>(&action);
  return delay != nullptr && delay->spread != Spread::kFixed;
}

}  // namespace

RuleState::RuleState(Rule rule, std::uint64_t seed)
    : rule_(std::move(rule)),
      action_text_(to_string(rule_.action)),
      ops_(acting_ops(rule_.match, rule_.action)),
      seed_(seed),
      id_(hash_text(rule_.name)),
      phase_(rule_.match.phase),
      since_(rule_.match.since ? rule_.match.since->mark : ""),
      draws_(rule_.match.probability || is_drawn(rule_.action)),
      counts_(rule_.match.nth || rule_.match.every || rule_.match.after_bytes || draws_) {}

std::uint64_t RuleState::delivering_ops() const {
  const auto* error = std::get_if<ErrnoAction>(&rule_.action);
  if (error == nullptr || !error->late) return 0;
  switch (*error->late) {
    case LateAt::kFsync:
      return op_bit(Op::kFsync);
    case LateAt::kClose:
      return op_bit(Op::kClose);
    case LateAt::kWrite:
      return op_bit(Op::kWrite);
  }
  return 0;
}

bool RuleState::phase_holds(const Operation& operation, const Phase& phase) const {
  const Match& match = rule_.match;
  if (match.attempt && *match.attempt != phase.attempt) return false;
  if (match.phase.empty()) return true;
  if (operation.op == Op::kPhase) return matches_mark(phase_, operation.path2, phase);
  return !phase.full.empty() && (phase_.matches(phase.full) || phase_.matches(phase.span));
}

bool RuleState::since_begins_at(std::string_view mark, const Phase& phase) const {
  return rule_.match.since && matches_mark(since_, mark, phase);
}

std::uint64_t RuleState::count_key(const Operation& operation) const {
  switch (rule_.match.per) {
    case CountPer::kRank:
      return static_cast<std::uint64_t>(operation.caller.rank);
    case CountPer::kFile:
      return operation.file != 0 ? operation.file : hash_text(operation.path);
    case CountPer::kRule:
      return 0;
  }
  return 0;
}

RuleState::Selected RuleState::selects(const Operation& operation) {
  candidates_.fetch_add(1, std::memory_order_relaxed);
  if (!counts_) return {.fires = true};
  const Match& match = rule_.match;
  std::uint64_t nth = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t nth_of_rank = 0;
  {
    const std::lock_guard lock(mutex_);
    Count& count = by_key_[count_key(operation)];
    nth = ++count.operations;
    bytes_before = count.bytes;
    count.bytes += operation.length;
    if (draws_) nth_of_rank = ++by_rank_[operation.caller.rank];
  }
  Selected selected{.fires = true,
                    .nth_of_rank = nth_of_rank,
                    .is_last = match.nth && !match.every && nth >= *match.nth};
  if (match.every) {
    const std::uint64_t first = match.nth.value_or(*match.every);
    selected.fires = nth >= first && (nth - first) % *match.every == 0;
  } else if (match.nth) {
    selected.fires = nth == *match.nth;
  }
  if (match.after_bytes && bytes_before < *match.after_bytes) selected.fires = false;
  if (selected.fires && match.probability) {
    selected.fires =
        random_unit(seed_, id_, operation.caller.rank, nth_of_rank) < *match.probability;
  }
  return selected;
}

std::uint64_t RuleState::delay_ns(const DelayAction& delay, int rank,
                                  std::uint64_t nth_of_rank) const {
  if (delay.spread == Spread::kFixed) return delay.nanoseconds;
  // Other numbers than those that `probability` draws.
  return draw_delay(delay, random_unit(seed_, mix_bits(id_ + 1), rank, nth_of_rank),
                    random_unit(seed_, mix_bits(id_ + 2), rank, nth_of_rank));
}

std::uint64_t RuleState::link_delay_ns(const BandwidthAction& link, std::uint64_t bytes,
                                       std::uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  return pass_link(link_free_ns_, link.bytes_per_second, bytes, now_ns) - now_ns;
}

bool RuleState::claim_once() { return !rule_.match.once || !once_taken_.exchange(true); }

}  // namespace savegate::faults
