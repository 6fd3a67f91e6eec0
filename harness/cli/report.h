// The report of a run on stdout.
#pragma once

#include <string>

#include "reports/result.h"

namespace savegate::cli {

// `scenario_lines`: a line a scenario too, for a run that printed none as it went.
void print_report(const reports::RunRecord& record, const std::string& run_directory,
                  bool scenario_lines);

}  // namespace savegate::cli
