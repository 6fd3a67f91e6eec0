// ArmedPlan: one plan while it is in force, with its counters, late errors and accounts.
//
// How several rules act on one operation: each is asked in the order of the plan and counts for
// itself. Delays add up. Of the rest an operation can take one of each: one that decides its
// outcome (errno, short, lie), one hang, one kill, one corruption; the first that fires is taken,
// and a later one does not act and counts no hit. A late error that is due comes before all rules,
// budgets come after them and charge only what the rules let through.
//
// A late error is two operations: the one that the rule matches succeeds and marks its file, and
// the next fsync (or close, or write) of that file, by whomever, gets the errno. That one is the
// hit: a file that is never synced again shows no error to anyone, and the rule has not fired.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "faults/budget.h"
#include "faults/injector.h"
#include "faults/phases.h"
#include "faults/rule_index.h"
#include "faults/rule_state.h"

namespace savegate::faults {

class ArmedPlan {
 public:
  ArmedPlan(Plan plan, const Layout& layout, int life, std::uint64_t generation);

  const Plan& plan() const { return plan_; }
  std::uint64_t generation() const { return generation_; }

  struct Selection {
    std::uint64_t ops = 0;
    bool keeps_unsynced = false;
    bool keeps_past = false;
    Classified file;
    RuleSet rules;
    std::vector<std::uint32_t> budgets;
  };
  Selection select(std::string_view path) const;
  std::vector<std::uint32_t> common_budgets_of(std::string_view path) const;  // of all ranks

  // `rules` are those of the file; what is over for this file leaves them.
  Decision decide(const Operation& operation, RuleSet& rules,
                  const std::vector<std::uint32_t>& budgets, const Phases& phases);
  void marked(int rank, std::string_view name, const Phase& phase, std::uint64_t now_ns) {
    index_.marked(rank, name, phase, now_ns);
  }

  Accounts& accounts() { return accounts_; }
  const Accounts& accounts() const { return accounts_; }
  void forget_late_errors(FileId file);
  std::vector<Injector::RuleCount> counts() const;

 private:
  class Verdict;
  std::vector<std::uint32_t> budgets_of(std::string_view path) const;
  bool counts_for(std::uint32_t budget, int rank) const;
  static std::deque<RuleState> states_of(const Plan& plan);
  void ask(const Operation& operation, std::uint32_t index, RuleSet& of_file, Verdict& verdict);
  struct BudgetCount {
    std::atomic<std::uint64_t> candidates{0};
    std::atomic<std::uint64_t> hits{0};
  };

  void deliver_late_error(const Operation& operation, Verdict& verdict);
  void mark_late_error(const Operation& operation, std::uint32_t rule);
  void charge(const Operation& operation, const std::vector<std::uint32_t>& budgets,
              Verdict& verdict);
  void take_inode(const std::vector<std::uint32_t>& budgets, Verdict& verdict);

  const Plan plan_;
  const Layout layout_;
  const int life_;
  const std::uint64_t generation_;
  std::deque<RuleState> rules_;
  RuleIndex index_;
  std::vector<Glob> budget_paths_;
  std::deque<BudgetCount> budget_counts_;
  Accounts accounts_;

  std::atomic<std::uint64_t> late_files_{0};  // size of late_, so that most look no further
  std::mutex late_mutex_;                     // innermost
  std::unordered_map<FileId, std::vector<std::uint32_t>> late_;  // rules due, in order of marking
};

}  // namespace savegate::faults
