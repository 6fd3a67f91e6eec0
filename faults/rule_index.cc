#include "faults/rule_index.h"

#include <algorithm>

namespace savegate::faults {
namespace {

template <class T>
bool any_or_one_of(const std::vector<T>& wanted, const T& found) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), found) != wanted.end();
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool drops_unsynced(const Action& action) {
  const auto* error = std::get_if<ErrnoAction>(&action);
  return error != nullptr && error->drop;
}

bool shows_past(const Action& action) {
  const auto* corrupt = std::get_if<CorruptAction>(&action);
  return corrupt != nullptr && corrupt->kind == Corruption::kStale &&
         corrupt->on == CorruptOn::kOut;
}

RuleIndex::Named none(std::size_t rules) {
  return {.ops = 0, .keeps_unsynced = false, .keeps_past = false, .rules = RuleSet(rules)};
}

}  // namespace

RangeIndex::RangeIndex(const std::deque<RuleState>& rules, RangeOf range_of) {
  for (const RuleState& rule : rules) {
    const std::optional<Range>& range = range_of(rule.rule().match);
    if (!range) continue;
    edges_.push_back(range->from);
    edges_.push_back(range->to);
  }
  std::sort(edges_.begin(), edges_.end());
  edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
  for (std::size_t i = 0; i <= edges_.size() && used(); ++i) {
    const std::uint64_t first = i == 0 ? 0 : edges_[i - 1];
    RuleSet& set = sets_.emplace_back(rules.size());
    for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
      const std::optional<Range>& range = range_of(rules[rule].rule().match);
      const bool before_all = i == 0;
      if (!range || (!before_all && range->from <= first && first < range->to)) set.add(rule);
    }
  }
}

// Without branches: which way they go cannot be foreseen.
const RuleSet& RangeIndex::of(std::uint64_t value) const {
  const std::uint64_t* base = edges_.data();
  for (std::size_t left = edges_.size(); left > 1;) {
    const std::size_t half = left / 2;
    base += base[half - 1] <= value ? half : 0;
    left -= half;
  }
  const auto edge = static_cast<std::size_t>(base - edges_.data());
  return sets_[edge + (*base <= value ? 1 : 0)];
}

RuleIndex::OfRank::OfRank(int rank, const std::deque<RuleState>& all)
    : rules(all.size()), marked_at(all.size()), now(all.size()) {
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    if (any_or_one_of(all[i].rule().match.ranks, rank)) rules.add(i);
  }
}

RuleIndex::RuleIndex(const std::deque<RuleState>& rules, int life)
    : rules_(rules),
      by_offset_(
          rules, [](const Match& match) -> const auto& { return match.offset; }),
      by_size_(
          rules, [](const Match& match) -> const auto& { return match.size; }),
      live_(rules.size()) {
  for (RuleSet& set : by_op_) set = RuleSet(rules.size());
  for (RuleSet& set : by_relation_) set = RuleSet(rules.size());
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const RuleState& rule = rules[i];
    const Match& match = rule.rule().match;
    if (!any_or_one_of(match.lives, life)) continue;
    live_.add(i);
    for (std::size_t op = 0; op < by_op_.size(); ++op) {
      if ((rule.ops() & op_bit(static_cast<Op>(op))) != 0) by_op_.at(op).add(i);
    }
    for (std::size_t relation = 0; relation < by_relation_.size(); ++relation) {
      if (any_or_one_of(match.relations, static_cast<Relation>(relation))) {
        by_relation_.at(relation).add(i);
      }
    }
    if (rule.needs_phase() || match.since) phased_.push_back(i);
    if (match.since) since_.push_back(i);

    auto same = std::find_if(names_.begin(), names_.end(), [&](const NameClass& name) {
      return name.path.pattern() == match.path && name.role == match.role &&
             name.temporary == match.temporary;
    });
    if (same == names_.end()) {
      names_.push_back({.path = Glob(match.path),
                        .role = match.role,
                        .temporary = match.temporary,
                        .named = none(rules.size())});
      same = std::prev(names_.end());
    }
    same->named.ops |= rule.ops() | rule.delivering_ops() | rule.uncached_ops();
    same->named.keeps_unsynced |= drops_unsynced(rule.rule().action);
    same->named.keeps_past |= shows_past(rule.rule().action);
    same->named.rules.add(i);
  }
}

RuleIndex::Named RuleIndex::named(std::string_view path, const Classified& file) const {
  Named found = none(rules_.size());
  for (const NameClass& name : names_) {
    if (name.role && *name.role != file.role) continue;
    if (name.temporary && *name.temporary != file.temporary) continue;
    if (!name.path.pattern().empty() && !name.path.matches(path)) continue;
    found.ops |= name.named.ops;
    found.keeps_unsynced |= name.named.keeps_unsynced;
    found.keeps_past |= name.named.keeps_past;
    found.rules |= name.named.rules;
  }
  return found;
}

const RuleSet& RuleIndex::holding_now(OfRank& rank, const Operation& operation,
                                      const Phases& phases) {
  const std::uint64_t now = operation.now_ns;
  if (rank.phase_serial.load(std::memory_order_acquire) != phases.serial(operation.caller.rank) ||
      now < rank.from_ns.load(std::memory_order_relaxed) ||
      now >= rank.until_ns.load(std::memory_order_relaxed)) {
    refresh(rank, operation, phases);
  }
  return rank.now;
}

void RuleIndex::refresh(OfRank& rank, const Operation& operation, const Phases& phases) {
  const std::lock_guard lock(rank.mutex);
  // In this order: a phase that comes in between is found missing by the next operation.
  const std::uint64_t serial = phases.serial(operation.caller.rank);
  const auto phase = phases.now(operation.caller.rank);
  std::uint64_t from = 0;
  std::uint64_t until = UINT64_MAX;
  for (const std::uint32_t i : since_) {
    const std::uint64_t mark = rank.marked_at[i].load(std::memory_order_relaxed);
    if (mark == 0) continue;
    const Since& since = *rules_[i].rule().match.since;
    for (const std::uint64_t edge :
         {saturating_add(mark, since.from_ns), saturating_add(mark, since.to_ns)}) {
      if (edge <= operation.now_ns) from = std::max(from, edge);
      if (edge > operation.now_ns) until = std::min(until, edge);
    }
  }
  RuleSet holding(rules_.size());
  for (std::size_t i = 0; i < holding.size(); ++i) holding.set_word(i, UINT64_MAX);
  for (const std::uint32_t i : phased_) {
    if (!rules_[i].phase_holds(operation, *phase) || !since_holds(rank, i, operation.now_ns)) {
      holding.remove(i);
    }
  }
  for (std::size_t i = 0; i < holding.size(); ++i) rank.now.set_word(i, holding.word(i));
  rank.from_ns.store(from, std::memory_order_relaxed);
  rank.until_ns.store(until, std::memory_order_relaxed);
  rank.phase_serial.store(serial, std::memory_order_release);
}

bool RuleIndex::since_holds(const OfRank& rank, std::uint32_t rule, std::uint64_t now_ns) const {
  const std::optional<Since>& since = rules_[rule].rule().match.since;
  if (!since) return true;
  const std::uint64_t mark = rank.marked_at[rule].load(std::memory_order_relaxed);
  if (mark == 0 || now_ns < mark) return false;
  const std::uint64_t elapsed = now_ns - mark;
  return since->from_ns <= elapsed && elapsed < since->to_ns;
}

void RuleIndex::marked(int rank, std::string_view name, const Phase& phase, std::uint64_t now_ns) {
  if (since_.empty()) return;
  OfRank& of = of_rank(rank);
  const std::lock_guard lock(of.mutex);
  for (const std::uint32_t i : since_) {
    if (rules_[i].since_begins_at(name, phase)) {
      of.marked_at[i].store(std::max<std::uint64_t>(now_ns, 1), std::memory_order_relaxed);
    }
  }
  of.until_ns.store(0, std::memory_order_relaxed);
}

}  // namespace savegate::faults
