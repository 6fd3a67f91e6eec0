// History: what earlier runs of a store found, and what that makes of a result of today.
//
//   SAVEGATE_TRY(HistoryFile history, HistoryFile::open("store/history.db"));
//   for (const HistoryRow& now : rows_of(run, unix_time)) {
//     SAVEGATE_TRY(auto past, history.recent(now.about, kRowsLookedAt));
//     Standing standing = standing_of(now, past);      // new, or known since when; flaky or not
//   }
//
// What is here is pure; history_file.h keeps the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "reports/result.h"

namespace savegate::reports {

inline constexpr std::size_t kRowsLookedAt = 20;

// What is compared over time: a scenario, or one point of a sweep, in the same circumstances.
struct About {
  std::string scenario;  // "smoke/clean", "kill-sweep/one-rank [rank 1 write … nth 2 before]"
  std::string subject;
  int world = 0;
  std::string device;
  bool operator==(const About&) const = default;
  bool operator<(const About& other) const {
    return std::tie(scenario, subject, world, device) <
           std::tie(other.scenario, other.subject, other.world, other.device);
  }
};

// One result of one run.
struct HistoryRow {
  std::string run;
  std::int64_t ended = 0;  // seconds since 1970, of the run
  About about;
  Outcome outcome = Outcome::kSkip;
  std::vector<std::string> failed;  // ids of the verdicts that made it fail or invalid
  std::string sentence;             // of the first of them
  std::uint64_t seed = 0;
  Measurement seconds;
  std::string bound_to;
  bool operator==(const HistoryRow&) const = default;
};

HistoryRow row_of(const ScenarioResult& result, const RunRecord& run, std::int64_t ended);

// `past` is about the same, newest first. A failure is known where the last time it failed with the
// same ids, or more.
Standing standing_of(const HistoryRow& now, const std::vector<HistoryRow>& past);

// In which order scenarios are run, so that the most is learned first: those that failed the last
// time, then those never run, then those not run for longest. `latest` has the last row of each.
// Within each of these as given.
std::vector<std::size_t> order_by_history(const std::vector<About>& scenarios,
                                          const std::map<About, HistoryRow>& latest);

}  // namespace savegate::reports
