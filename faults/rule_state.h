// RuleState: one armed rule with its counters. It says of an operation whether it is a candidate
// (everything but the counts holds) and whether the rule fires at it (the counts hold too).
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

  // What its name, role and the life allow; asked once a file.
  bool can_match(std::string_view path, const Classified& file, int life) const;
  // Operations that the rule may act on, and those at which it delivers a late error.
  std::uint64_t ops() const { return ops_; }
  std::uint64_t delivering_ops() const;
  bool needs_phase() const { return !rule_.match.phase.empty() || rule_.match.attempt.has_value(); }

  // Whether all but the counts holds. `phase` is the caller's; read only where needs_phase().
  bool is_candidate(const Operation& operation, const Phase* phase) const;
  // Counts the candidate; true if it is one of those at which the rule fires.
  bool selects(const Operation& operation);
  // False if a `once` rule has fired already; else it has now.
  bool claim_once();
  std::uint64_t count_hit() { return 1 + hits_.fetch_add(1); }

  const Rule& rule() const { return rule_; }
  const std::string& action_text() const { return action_text_; }
  std::uint64_t candidates() const { return candidates_.load(); }
  std::uint64_t hits() const { return hits_.load(); }

 private:
  struct Count {
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
  };
  bool phase_matches(const Operation& operation, const Phase& phase) const;
  std::uint64_t count_key(const Operation& operation) const;

  const Rule rule_;
  const std::string action_text_;
  const std::uint64_t ops_;
  const std::uint64_t seed_;
  const std::uint64_t id_;  // of the name: other rules of the plan change nothing
  const Glob path_;
  const Glob phase_;
  const bool counts_;  // some count matters

  std::atomic<std::uint64_t> candidates_{0};
  std::atomic<std::uint64_t> hits_{0};
  std::atomic<bool> once_taken_{false};
  std::mutex mutex_;  // of the maps; nothing else is locked while it is held
  std::unordered_map<std::uint64_t, Count> by_key_;
  std::unordered_map<int, std::uint64_t> by_rank_;  // candidates; for probability
};

}  // namespace savegate::faults
