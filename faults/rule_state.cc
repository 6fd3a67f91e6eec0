#include "faults/rule_state.h"

#include <algorithm>
#include <utility>

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

}  // namespace

RuleState::RuleState(Rule rule, std::uint64_t seed)
    : rule_(std::move(rule)),
      action_text_(to_string(rule_.action)),
      ops_(acting_ops(rule_.match, rule_.action)),
      seed_(seed),
      id_(hash_text(rule_.name)),
      phase_(rule_.match.phase),
      since_(rule_.match.since ? rule_.match.since->mark : ""),
      counts_(rule_.match.nth || rule_.match.every || rule_.match.after_bytes ||
              rule_.match.probability) {}

std::uint64_t RuleState::delivering_ops() const {
  const auto* error = std::get_if<ErrnoAction>(&rule_.action);
  if (error == nullptr || !error->late) return 0;
  return op_bit(*error->late == LateAt::kFsync ? Op::kFsync : Op::kClose);
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
    if (match.probability) nth_of_rank = ++by_rank_[operation.caller.rank];
  }
  Selected selected{.fires = true, .is_last = match.nth && !match.every && nth >= *match.nth};
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

bool RuleState::claim_once() { return !rule_.match.once || !once_taken_.exchange(true); }

}  // namespace savegate::faults
