// The result model: verdicts, scenario results and run records, as result.json holds them.
//
// result.json is versioned by `schema`; docs/result-schema.json describes it and a test holds the
// two together. A measurement that was not made is absent here and written "not obtained" (H6).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"

namespace savegate::reports {

inline constexpr int kResultSchema = 1;

enum class Outcome : std::uint8_t { kPass, kFail, kInvalid, kSkip };
std::string_view outcome_name(Outcome outcome);  // "PASS"
std::optional<Outcome> outcome_from_name(std::string_view name);
bool did_not_pass(Outcome outcome);  // FAIL or INVALID

// What one oracle says of one scenario.
struct Verdict {
  std::string requirement;  // "C1"
  Outcome outcome = Outcome::kSkip;
  std::string summary;                // one sentence: what was seen, or why it was skipped
  std::vector<std::string> evidence;  // quoted lines: "life 2 rank 1 events:14 save_end ok=true"
};

struct FiredCount {
  int life = 0;
  std::string rule;
  bool required = true;
  std::uint64_t hits = 0;
};

using Measurement = std::optional<double>;  // absent: "not obtained"

struct LifeSummary {
  int number = 0;
  std::string until;
  std::string outcome;  // what happened: "complete", "fail-together", "hung" …
  Measurement seconds;
  Measurement save_seconds;  // of the last save of the life, slowest rank
  Measurement restore_seconds;
  Measurement bytes_saved;  // of that save, all ranks
  Measurement files;
};

// An agreement that a failure is known and does not fail the run until a date (quarantine.h).
struct Quarantine {
  std::string until;  // "2026-12-31", the last day
  std::string reason;
  std::string issue;  // a link, or ""
  bool expired = false;
};

enum class Failure : std::uint8_t { kNone, kNew, kKnown };

// What earlier runs of the store, and the quarantine, say of a result.
struct Standing {
  Failure failure = Failure::kNone;  // did not pass; kKnown: nor the last time, for the same reason
  std::string since = {};  // of a known one: the run in which it failed first, without a pass since
  bool flaky = false;      // passed and failed while bound to the same
  std::optional<Quarantine> quarantine = {};  // of what did not pass
};

struct ScenarioResult {
  std::string suite;
  std::string scenario;
  std::string point;  // of a sweep, else ""
  std::string summary;
  Outcome outcome = Outcome::kInvalid;  // FAIL before INVALID before PASS; SKIP if nothing applied
  std::vector<std::string> requirements;  // that it claims to exercise
  std::vector<Verdict> verdicts;
  std::vector<FiredCount> fired;
  std::vector<LifeSummary> lives;
  std::uint64_t seed = 0;
  int world = 0;
  std::string directory;  // in the store, relative to the run
  std::string repeat;     // the command that repeats it
  Measurement seconds;
  std::string bound_to;  // digest of the code, the command and the scenario; "": not obtained
  std::optional<Standing> standing;  // absent where nobody asked for the history
};

struct Coverage {  // of a sweep
  std::string scenario;
  std::uint64_t known = 0;
  std::uint64_t tried = 0;
};

struct RunRecord {
  std::string id;  // "<time>-<suite>"
  std::string command;
  std::string subject;  // "" where there were several
  std::string device;
  std::map<std::string, std::string> provenance;  // H4; "not obtained" where so
  std::vector<ScenarioResult> scenarios;
  std::vector<Coverage> coverage;
  std::string supersedes;  // an earlier run of the store that this one repeats, or ""
  Measurement seconds;
};

Outcome overall(const std::vector<Verdict>& verdicts);
Outcome overall(const RunRecord& run);  // of what is not quarantined
int exit_code(const RunRecord& run);    // 0, 1 (a FAIL), 4 (no FAIL, but INVALID or nothing ran)

bool is_quarantined(const ScenarioResult& result);     // and its date has not passed
std::string full_name(const ScenarioResult& result);   // "kill-sweep/one-rank-0007"
std::string group_name(const ScenarioResult& result);  // of a sweep's point: the sweep's
// The same in every run, although a sweep numbers its points anew.
std::string lasting_name(const ScenarioResult& result);
// "new", "known since RUN, flaky", "quarantined until 2026-12-31: REASON"; "" where there is
// nothing to say.
std::string standing_words(const ScenarioResult& result);

std::string print_json(const ScenarioResult& result);
std::string print_json(const RunRecord& run);
Result<ScenarioResult> scenario_result_from_json(std::string_view json);
Result<RunRecord> run_record_from_json(std::string_view json);
std::string print_junit(const RunRecord& run);  // JUnit XML

}  // namespace savegate::reports
