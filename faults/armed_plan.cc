#include "faults/armed_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

namespace savegate::faults {
namespace {

constexpr std::uint64_t kCharging = (std::uint64_t{1} << static_cast<int>(Op::kWrite)) |
                                    (std::uint64_t{1} << static_cast<int>(Op::kFallocate)) |
                                    (std::uint64_t{1} << static_cast<int>(Op::kCopyFileRange));

constexpr std::uint64_t kMaking = (std::uint64_t{1} << static_cast<int>(Op::kCreate)) |
                                  (std::uint64_t{1} << static_cast<int>(Op::kMkdir)) |
                                  (std::uint64_t{1} << static_cast<int>(Op::kMknod)) |
                                  (std::uint64_t{1} << static_cast<int>(Op::kSymlink));

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

}  // namespace

// The decision on one operation while it is being made.
class ArmedPlan::Verdict {
 public:
  Verdict(const Operation& operation, const Phases& phases, int life)
      : operation_(operation), phases_(phases), life_(life) {}

  const Phase& phase() {
    if (!phase_) phase_ = phases_.now(operation_.caller.rank);
    return *phase_;
  }

  // Lets the rule act if the operation still has room for it.
  void act(RuleState& rule) {
    const std::uint64_t stall = decision_.delay_ns;
    const bool hang = decision_.hang;
    const bool acts =
        std::visit([&](const auto& action) { return take(rule, action); }, rule.rule().action);
    if (!acts) return;
    add_hit(rule.rule().name, rule.count_hit(), rule.action_text());
    decision_.hits.back().stalls = decision_.delay_ns != stall || decision_.hang != hang;
  }

  void fail_late(RuleState& rule) {
    const auto& action = std::get<ErrnoAction>(rule.rule().action);
    outcome_taken_ = true;
    decision_.error = action.error;
    decision_.allowed = 0;
    decision_.drops_unsynced = action.drop;
    add_hit(rule.rule().name, rule.count_hit(), rule.action_text());
  }
  bool outcome_taken() const { return outcome_taken_; }

  // Bytes that would be written if no budget minded.
  std::uint64_t bytes_to_charge() const {
    if (decision_.lie || killed_before()) return 0;
    return std::min(operation_.length, decision_.allowed);
  }
  bool makes_a_file() const { return decision_.error == 0 && !killed_before(); }
  void takes_inode() { decision_.takes_inode = true; }
  void refuse_inode(const BudgetSpec& budget, std::uint64_t hit) {
    decision_.error = budget.error;
    decision_.allowed = 0;
    add_hit(
        budget.name, hit,
        fmt::format("budget {} inodes {}", errno_name(budget.error), budget.inodes.value_or(0)));
  }

  void limit(std::uint64_t bytes, const BudgetSpec& budget, std::uint64_t hit) {
    decision_.allowed = bytes;
    const bool outcome_is_errno = decision_.error != 0;
    if (bytes == 0) {
      if (!outcome_is_errno) decision_.error = budget.error;
      decision_.allowed_is_short = false;
    } else if (!outcome_is_errno) {
      decision_.allowed_is_short = true;
    }
    add_hit(budget.name, hit,
            fmt::format("budget {} limit {}", errno_name(budget.error),
                        budget.limit.value_or(UINT64_MAX)));
  }

  Decision take() { return std::move(decision_); }

 private:
  bool killed_before() const {
    return decision_.kill && decision_.kill->when == When::kBefore &&
           decision_.kill->signal == SIGKILL;
  }
  Hit hit_of(const std::string& name, std::uint64_t hit, std::string action) {
    const Phase& now = phase();
    return {.rule = name,
            .hit = hit,
            .action = std::move(action),
            .stalls = false,
            .life = life_,
            .attempt = now.attempt,
            .phase = now.full};
  }
  void add_hit(const std::string& name, std::uint64_t hit, std::string action) {
    decision_.hits.push_back(hit_of(name, hit, std::move(action)));
  }

  std::uint64_t moved() const { return std::min(operation_.length, operation_.available); }

  bool take_outcome(RuleState& rule) {
    if (outcome_taken_ || !rule.claim_once()) return false;
    outcome_taken_ = true;
    return true;
  }

  bool take(RuleState& rule, const ErrnoAction& action) {
    if (!take_outcome(rule)) return false;
    decision_.error = action.error;
    decision_.allowed = action.after ? bytes_of(*action.after, operation_.length) : 0;
    decision_.drops_unsynced = action.drop;
    return true;
  }

  bool take(RuleState& rule, const ShortAction& action) {
    if (operation_.of_mapping) return false;
    std::uint64_t bytes = bytes_of(action.bytes, moved());
    // Half of 1 byte is no short write but none at all, which a share does not ask for.
    if (action.bytes.share && bytes == 0) bytes = 1;
    if (bytes >= moved() || !take_outcome(rule)) return false;
    decision_.allowed = bytes;
    decision_.allowed_is_short = true;
    return true;
  }

  bool take(RuleState& rule, const LieAction&) {
    if (!take_outcome(rule)) return false;
    decision_.lie = true;
    return true;
  }

  bool take(RuleState& rule, const DelayAction& action) {
    if (!rule.claim_once()) return false;
    wait(rule.delay_ns(action, operation_.caller.rank, nth_of_rank_));
    return true;
  }

  bool take(RuleState& rule, const BandwidthAction& action) {
    if (!rule.claim_once()) return false;
    wait(rule.link_delay_ns(action, operation_.length, operation_.now_ns));
    return true;
  }

  bool take(RuleState& rule, const FreezeAction& action) {
    if (decision_.freeze || (!action.nanoseconds && decision_.hang) || !rule.claim_once()) {
      return false;
    }
    decision_.freeze = action.target;
    return action.nanoseconds ? wait(*action.nanoseconds) : hang();
  }

  bool take(RuleState& rule, const HangAction&) {
    return !decision_.hang && rule.claim_once() && hang();
  }

  // The hit is counted when it is lost.
  bool take(RuleState& rule, const LoseAction&) {
    if (!decision_.loses && rule.claim_once()) {
      decision_.loses = hit_of(rule.rule().name, 0, rule.action_text());
    }
    return false;
  }

  bool take(RuleState& rule, const KillAction& action) {
    const bool middle = action.when == When::kMiddle;
    if (decision_.kill || (middle && outcome_taken_) || !rule.claim_once()) return false;
    decision_.kill = action;
    if (middle) {
      outcome_taken_ = true;
      decision_.allowed = bytes_of(action.at, operation_.length);
    }
    return true;
  }

  bool take(RuleState& rule, const CorruptAction& action) {
    const std::uint64_t at = bytes_of(action.at, moved());
    if (at >= moved() || decision_.corrupt) return false;
    std::uint64_t length = std::min(action.length, moved() - at);
    if (action.kind == Corruption::kSwap) {
      const std::uint64_t with =
          action.with ? bytes_of(*action.with, moved()) : saturating_add(at, length);
      const std::uint64_t apart = with > at ? with - at : at - with;
      if (with >= moved() || apart == 0) return false;
      length = std::min({length, moved() - with, apart});
      decision_.corrupt_with = with;
    }
    const bool shows_past = action.kind == Corruption::kStale && action.on == CorruptOn::kOut;
    if ((shows_past && !operation_.has_past) || !rule.claim_once()) return false;
    decision_.corrupt = action;
    decision_.corrupt_at = at;
    decision_.corrupt_length = length;
    return true;
  }

  bool wait(std::uint64_t nanoseconds) {
    decision_.delay_ns = saturating_add(decision_.delay_ns, nanoseconds);
    return true;
  }
  bool hang() {
    decision_.hang = true;
    decision_.hang_rule = rule_index_;
    return true;
  }

  bool take(RuleState& rule, const MissingAction& action) {
    const auto feature = action.features.needed_by(operation_);
    if (feature == Feature::kMmap) {
      if (decision_.no_shared_mmap || !rule.claim_once()) return false;
      return decision_.no_shared_mmap = true;
    }
    if (!feature || !take_outcome(rule)) return false;
    decision_.error = errno_without(*feature, operation_);
    decision_.allowed = 0;
    return true;
  }

  // At most one of each of these, the first.
  template <class Kept>
  bool keep(std::optional<Kept>& kept, RuleState& rule, const Kept& action) {
    if (kept || !rule.claim_once()) return false;
    kept = action;
    return true;
  }
  bool take(RuleState& rule, const RaceAction& action) {
    return keep(decision_.race, rule, action);
  }
  bool take(RuleState& rule, const TimestampsAction& action) {
    return keep(decision_.timestamps, rule, action);
  }
  bool take(RuleState& rule, const StaleAction& action) {
    if (!keep(decision_.stale, rule, action)) return false;
    decision_.stale_rule = rule.rule().name;
    return true;
  }

 public:
  void set_rule(std::uint32_t index, std::uint64_t nth_of_rank) {
    rule_index_ = index;
    nth_of_rank_ = nth_of_rank;
  }

 private:
  const Operation& operation_;
  const Phases& phases_;
  const int life_;
  std::shared_ptr<const Phase> phase_;
  std::uint32_t rule_index_ = 0;
  std::uint64_t nth_of_rank_ = 0;
  bool outcome_taken_ = false;
  Decision decision_;
};

std::deque<RuleState> ArmedPlan::states_of(const Plan& plan) {
  std::deque<RuleState> states;
  for (const Rule& rule : plan.rules) states.emplace_back(rule, plan.seed);
  return states;
}

ArmedPlan::ArmedPlan(Plan plan, const Layout& layout, int life, std::uint64_t generation)
    : plan_(std::move(plan)),
      layout_(layout),
      life_(life),
      generation_(generation),
      rules_(states_of(plan_)),
      index_(rules_, life),
      accounts_(plan_.budgets) {
  for (const BudgetSpec& budget : plan_.budgets) {
    budget_paths_.emplace_back(budget.path);
    budget_counts_.emplace_back();
  }
}

std::vector<std::uint32_t> ArmedPlan::budgets_of(std::string_view path) const {
  std::vector<std::uint32_t> budgets;
  for (std::uint32_t i = 0; i < budget_paths_.size(); ++i) {
    if (budget_paths_[i].matches(path)) budgets.push_back(i);
  }
  return budgets;
}

std::vector<std::uint32_t> ArmedPlan::common_budgets_of(std::string_view path) const {
  std::vector<std::uint32_t> budgets = budgets_of(path);
  std::erase_if(budgets, [&](std::uint32_t index) { return !plan_.budgets[index].ranks.empty(); });
  return budgets;
}

bool ArmedPlan::counts_for(std::uint32_t budget, int rank) const {
  const std::vector<int>& ranks = plan_.budgets[budget].ranks;
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

ArmedPlan::Selection ArmedPlan::select(std::string_view path) const {
  Selection selection;
  if (rules_.empty() && budget_paths_.empty()) return selection;
  selection.file = classify(layout_, path);
  RuleIndex::Named named = index_.named(path, selection.file);
  selection.ops = named.ops;
  selection.keeps_unsynced = named.keeps_unsynced;
  selection.keeps_past = named.keeps_past;
  selection.rules = std::move(named.rules);
  selection.budgets = budgets_of(path);
  for (const std::uint32_t index : selection.budgets) {
    if (plan_.budgets[index].limit) selection.ops |= kCharging;
    if (plan_.budgets[index].inodes) selection.ops |= kMaking;
  }
  return selection;
}

Decision ArmedPlan::decide(const Operation& operation, RuleSet& rules,
                           const std::vector<std::uint32_t>& budgets, const Phases& phases) {
  Verdict verdict(operation, phases, life_);
  deliver_late_error(operation, verdict);
  index_.each(operation, rules, phases,
              [&](std::uint32_t index) { ask(operation, index, rules, verdict); });
  if (!budgets.empty() && (kCharging & op_bit(operation.op)) != 0) {
    const auto counted = [&](std::uint32_t index) {
      return counts_for(index, operation.caller.rank);
    };
    if (std::all_of(budgets.begin(), budgets.end(), counted)) {
      charge(operation, budgets, verdict);
    } else {
      std::vector<std::uint32_t> of_rank;
      std::copy_if(budgets.begin(), budgets.end(), std::back_inserter(of_rank), counted);
      charge(operation, of_rank, verdict);
    }
  }
  if (!budgets.empty() && (kMaking & op_bit(operation.op)) != 0) take_inode(budgets, verdict);
  return verdict.take();
}

void ArmedPlan::ask(const Operation& operation, std::uint32_t index, RuleSet& of_file,
                    Verdict& verdict) {
  RuleState& rule = rules_[index];
  if (rule.needs_phase() && !rule.phase_holds(operation, verdict.phase())) return;
  if (!concerns(rule.rule(), operation)) return;
  const RuleState::Selected selected = rule.selects(operation);
  if (selected.is_last) {
    switch (rule.rule().match.per) {
      case CountPer::kRank:
        index_.finish(index, operation.caller.rank);
        break;
      case CountPer::kFile:
        of_file.remove(index);
        break;
      case CountPer::kRule:
        index_.finish(index);
        break;
    }
  }
  if (!selected.fires) return;
  if (rule.delivering_ops() != 0) {
    if (!verdict.outcome_taken()) mark_late_error(operation, index);
  } else {
    verdict.set_rule(index, selected.nth_of_rank);
    verdict.act(rule);
  }
  if (rule.is_over()) index_.finish(index);
}

void ArmedPlan::deliver_late_error(const Operation& operation, Verdict& verdict) {
  constexpr std::uint64_t kDelivering = (std::uint64_t{1} << static_cast<int>(Op::kFsync)) |
                                        (std::uint64_t{1} << static_cast<int>(Op::kClose)) |
                                        (std::uint64_t{1} << static_cast<int>(Op::kWrite));
  if (late_files_.load() == 0 || (kDelivering & op_bit(operation.op)) == 0) return;
  std::optional<std::uint32_t> due;
  {
    const std::lock_guard lock(late_mutex_);
    const auto found = late_.find(operation.file);
    if (found == late_.end()) return;
    std::vector<std::uint32_t>& marks = found->second;
    const auto mark = std::find_if(marks.begin(), marks.end(), [&](std::uint32_t index) {
      return (rules_[index].delivering_ops() & op_bit(operation.op)) != 0;
    });
    if (mark == marks.end()) return;
    due = *mark;
    marks.erase(mark);
    if (marks.empty()) late_.erase(found);
    late_files_.store(late_.size());
  }
  verdict.fail_late(rules_[*due]);
}

void ArmedPlan::mark_late_error(const Operation& operation, std::uint32_t rule) {
  if (operation.file == 0) return;
  const std::lock_guard lock(late_mutex_);
  std::vector<std::uint32_t>& marks = late_[operation.file];
  const bool marked = std::find(marks.begin(), marks.end(), rule) != marks.end();
  if (!marked && rules_[rule].claim_once()) marks.push_back(rule);
  if (marks.empty()) late_.erase(operation.file);
  late_files_.store(late_.size());
}

void ArmedPlan::forget_late_errors(FileId file) {
  if (late_files_.load() == 0) return;
  const std::lock_guard lock(late_mutex_);
  late_.erase(file);
  late_files_.store(late_.size());
}

void ArmedPlan::charge(const Operation& operation, const std::vector<std::uint32_t>& budgets,
                       Verdict& verdict) {
  const std::uint64_t bytes = operation.takes_space ? verdict.bytes_to_charge() : 0;
  if (bytes == 0) return;
  for (const std::uint32_t index : budgets) budget_counts_[index].candidates.fetch_add(1);
  const Accounts::Grant grant =
      accounts_.charge(budgets, operation.file, operation.offset,
                       saturating_add(operation.offset, bytes), operation.op == Op::kFallocate);
  if (!grant.refused_by) return;
  const std::uint64_t hit = 1 + budget_counts_[*grant.refused_by].hits.fetch_add(1);
  verdict.limit(grant.bytes, plan_.budgets[*grant.refused_by], hit);
}

void ArmedPlan::take_inode(const std::vector<std::uint32_t>& budgets, Verdict& verdict) {
  if (!verdict.makes_a_file()) return;
  for (const std::uint32_t index : budgets) {
    if (plan_.budgets[index].inodes) budget_counts_[index].candidates.fetch_add(1);
  }
  const auto refused_by = accounts_.take_inode(budgets);
  if (!refused_by) return verdict.takes_inode();
  const std::uint64_t hit = 1 + budget_counts_[*refused_by].hits.fetch_add(1);
  verdict.refuse_inode(plan_.budgets[*refused_by], hit);
}

std::vector<Injector::RuleCount> ArmedPlan::counts() const {
  std::vector<Injector::RuleCount> counts;
  for (const RuleState& rule : rules_) {
    counts.push_back({.name = rule.rule().name,
                      .required = rule.rule().required,
                      .candidates = rule.candidates(),
                      .hits = rule.hits()});
  }
  for (std::size_t i = 0; i < plan_.budgets.size(); ++i) {
    counts.push_back({.name = plan_.budgets[i].name,
                      .required = plan_.budgets[i].required,
                      .candidates = budget_counts_[i].candidates.load(),
                      .hits = budget_counts_[i].hits.load()});
  }
  return counts;
}

}  // namespace savegate::faults
