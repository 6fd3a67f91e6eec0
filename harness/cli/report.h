// The report of a run on stdout.
#pragma once

#include <string>

#include "reports/result.h"

namespace savegate::cli {

void print_report(const reports::RunRecord& record, const std::string& run_directory);

}  // namespace savegate::cli
