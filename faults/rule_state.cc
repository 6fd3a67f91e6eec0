#include "faults/rule_state.h"

#include <algorithm>
#include <utility>

#include "faults/random.h"

namespace savegate::faults {
namespace {

template <class T>
bool any_or_one_of(const std::vector<T>& wanted, const T& found) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), found) != wanted.end();
}

bool within(const std::optional<Range>& range, std::uint64_t value) {
  return !range || (range->from <= value && value < range->to);
}

}  // namespace

RuleState::RuleState(Rule rule, std::uint64_t seed)
    : rule_(std::move(rule)),
      action_text_(to_string(rule_.action)),
      ops_(acting_ops(rule_.match, rule_.action)),
      seed_(seed),
      id_(hash_text(rule_.name)),
      path_(rule_.match.path),
      phase_(rule_.match.phase),
      counts_(rule_.match.nth || rule_.match.every || rule_.match.after_bytes ||
              rule_.match.probability) {}

bool RuleState::can_match(std::string_view path, const Classified& file, int life) const {
  const Match& match = rule_.match;
  if (!any_or_one_of(match.lives, life)) return false;
  if (match.role && *match.role != file.role) return false;
  if (match.temporary && *match.temporary != file.temporary) return false;
  return match.path.empty() || path_.matches(path);
}

std::uint64_t RuleState::delivering_ops() const {
  const auto* error = std::get_if<ErrnoAction>(&rule_.action);
  if (error == nullptr || !error->late) return 0;
  return op_bit(*error->late == LateAt::kFsync ? Op::kFsync : Op::kClose);
}

bool RuleState::phase_matches(const Operation& operation, const Phase& phase) const {
  if (operation.op != Op::kPhase) {
    return !phase.full.empty() && (phase_.matches(phase.full) || phase_.matches(phase.span));
  }
  // A mark is matched by its own name or by its place in the span; not by the span alone, which
  // every mark within it has in common.
  if (phase_.matches(operation.path2)) return true;
  if (phase.span.empty() || operation.path2 == phase.span) return false;
  std::string full = phase.span;
  full += '/';
  full += operation.path2;
  return phase_.matches(full);
}

bool RuleState::is_candidate(const Operation& operation, const Phase* phase) const {
  const Match& match = rule_.match;
  if (!any_or_one_of(match.ranks, operation.caller.rank)) return false;
  if (!any_or_one_of(match.relations, operation.caller.relation)) return false;
  if (!within(match.offset, operation.offset) || !within(match.size, operation.length)) {
    return false;
  }
  if (match.attempt && *match.attempt != phase->attempt) return false;
  return match.phase.empty() || phase_matches(operation, *phase);
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

bool RuleState::selects(const Operation& operation) {
  candidates_.fetch_add(1);
  if (!counts_) return true;
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
  if (match.every) {
    const std::uint64_t first = match.nth.value_or(*match.every);
    if (nth < first || (nth - first) % *match.every != 0) return false;
  } else if (match.nth && nth != *match.nth) {
    return false;
  }
  if (match.after_bytes && bytes_before < *match.after_bytes) return false;
  return !match.probability ||
         random_unit(seed_, id_, operation.caller.rank, nth_of_rank) < *match.probability;
}

bool RuleState::claim_once() { return !rule_.match.once || !once_taken_.exchange(true); }

}  // namespace savegate::faults
