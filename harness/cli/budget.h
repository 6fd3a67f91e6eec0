// The budget of a run: no scenario begins that is not expected to end within it.
//
// How long one takes is known from its last run, if it had one. What does not fit any more is a
// result too: SKIP, with the budget as the reason.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/scenario.h"
#include "reports/history.h"

namespace savegate::cli {

class Budget {
 public:
  // `latest` is the store's; of it what is about the subject and device counts.
  Budget(std::string words, std::uint64_t nanoseconds,
         const std::map<reports::About, reports::HistoryRow>& latest, const std::string& subject,
         const std::string& device);

  bool has_time() const { return left_ns() > 0; }
  bool fits(const harness::Scenario& scenario) const;
  bool fits(double seconds) const { return static_cast<double>(left_ns()) / 1e9 >= seconds; }

  // What failed the last time first, then what never ran, then what did not run for longest.
  void order(std::vector<harness::Scenario>& scenarios) const;

  reports::ScenarioResult not_run(const harness::Scenario& scenario) const;
  // "not run within the budget of 30m: 1 scenario (smoke/clean) and 5 points of …"; "" if all were.
  std::string account(const reports::RunRecord& run) const;

 private:
  std::uint64_t left_ns() const;
  std::string reason() const;
  reports::About about(const harness::Scenario& scenario) const;

  std::string words_;
  std::uint64_t ends_ns_;
  std::string subject_;
  std::string device_;
  std::map<reports::About, reports::HistoryRow> latest_;  // points, and sweeps as a whole
};

}  // namespace savegate::cli
