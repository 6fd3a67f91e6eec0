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
};

struct Coverage {  // of a sweep
  std::string scenario;
  std::uint64_t known = 0;
  std::uint64_t tried = 0;
};

struct RunRecord {
  std::string id;  // "<time>-<suite>"
  std::string command;
  std::map<std::string, std::string> provenance;  // H4; "not obtained" where so
  std::vector<ScenarioResult> scenarios;
  std::vector<Coverage> coverage;
  std::string supersedes;  // an earlier run of the store that this one repeats, or ""
  Measurement seconds;
};

Outcome overall(const std::vector<Verdict>& verdicts);
Outcome overall(const RunRecord& run);
int exit_code(const RunRecord& run);  // 0, 1 (a FAIL), 4 (no FAIL, but INVALID or nothing ran)

std::string print_json(const ScenarioResult& result);
std::string print_json(const RunRecord& run);
Result<ScenarioResult> scenario_result_from_json(std::string_view json);
Result<RunRecord> run_record_from_json(std::string_view json);
std::string print_junit(const RunRecord& run);  // JUnit XML

}  // namespace savegate::reports
