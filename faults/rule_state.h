// RuleState: one armed rule with its counters. It says whether a rank's phase suits it, and of an
// operation for which all but the counts holds, whether the rule fires at it.
//
// Thread-safe. The counts of a rank are kept apart from those of the others, so that what the rule
// does to one rank never depends on when another came along; only per = "file" and per = "rule"
// count across ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "faults/layout.h"
#include "faults/operation.h"
#include "faults/phases.h"
#include "faults/plan.h"

namespace savegate::faults {

class RuleState {
 public:
  RuleState(Rule rule, std::uint64_t seed);

  // Operations that the rule may act on, and those at which it delivers a late error.
  std::uint64_t ops() const { return ops_; }
  std::uint64_t delivering_ops() const;
  std::uint64_t uncached_ops() const { return faults::uncached_ops(rule_.action); }
  bool needs_phase() const { return !rule_.match.phase.empty() || rule_.match.attempt.has_value(); }

  // Whether the rule's phase and attempt are those of the caller.
  bool phase_holds(const Operation& operation, const Phase& phase) const;
  // Whether the rule's `since` counts from this mark of a rank in that phase.
  bool since_begins_at(std::string_view mark, const Phase& phase) const;
  // Counts the candidate.
  struct Selected {
    bool fires = false;
    std::uint64_t nth_of_rank = 0;  // where the rule draws random numbers
    bool is_last = false;           // none that is counted with it can make the rule fire any more
  };
  Selected selects(const Operation& operation);
  // False if a `once` rule has fired already; else it has now.
  bool claim_once();
  bool is_over() const { return once_taken_.load(std::memory_order_relaxed); }
  std::uint64_t count_hit() { return 1 + hits_.fetch_add(1); }
  // How long the rank's n-th candidate waits.
  std::uint64_t delay_ns(const DelayAction& delay, int rank, std::uint64_t nth_of_rank) const;
  // How long so many bytes wait for the rule's link.
  std::uint64_t link_delay_ns(const BandwidthAction& link, std::uint64_t bytes,
                              std::uint64_t now_ns);

  const Rule& rule() const { return rule_; }
  const std::string& action_text() const { return action_text_; }
  std::uint64_t candidates() const { return candidates_.load(); }
  std::uint64_t hits() const { return hits_.load(); }

 private:
  struct Count {
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
  };
  std::uint64_t count_key(const Operation& operation) const;

  const Rule rule_;
  const std::string action_text_;
  const std::uint64_t ops_;
  const std::uint64_t seed_;
  const std::uint64_t id_;  // of the name: other rules of the plan change nothing
  const Glob phase_;
  const Glob since_;
  const bool draws_;   // random numbers
  const bool counts_;  // some count matters

  std::atomic<std::uint64_t> candidates_{0};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<bool> once_taken_{false};
  std::mutex mutex_;  // of what follows; nothing else is locked while it is held
  std::unordered_map<std::uint64_t, Count> by_key_;
  std::unordered_map<int, std::uint64_t> by_rank_;  // candidates; for what is drawn
  std::uint64_t link_free_ns_ = 0;
};

}  // namespace savegate::faults
