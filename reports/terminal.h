// The final report of a run as text: a line a scenario or sweep, a paragraph a failure, a summary.
//
//   PASS     smoke/clean-save-and-resume  1.2 s
//   FAIL     enospc/mid-shard  2.0 s  fired 1
//   PASS     kill-sweep/every-operation  184/184 points  71.4 s  fired 184
//
// The word says the outcome; colour only repeats it, and only where asked for (a terminal). The
// last line of a failure's paragraph is the command that repeats it.
#pragma once

#include <map>
#include <string>

#include "reports/result.h"

namespace savegate::reports {

struct TerminalOptions {
  bool colour = false;
  bool scenario_lines = true;                // false where each was printed as it ended
  std::string store;                         // path of the run in the store
  std::map<std::string, std::string> rules;  // requirement → its rule in one line
};

// One line, with '\n'.
std::string render_scenario(const ScenarioResult& result, bool colour);
// Paragraph of one scenario that failed or is invalid, with '\n'.
std::string render_failure(const ScenarioResult& result, const TerminalOptions& options);
// "12 run: 10 passed, 1 failed, 0 invalid, 1 skipped; 1 new"
std::string render_counts(const RunRecord& run);
// Everything.
std::string render_run(const RunRecord& run, const TerminalOptions& options);

}  // namespace savegate::reports
