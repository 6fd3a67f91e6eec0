// report.html and trace.perfetto.json of a run, out of what the store holds.
#pragma once

#include <string>

#include "faults/status.h"
#include "harness/evidence.h"
#include "reports/result.h"

namespace savegate::cli {

// In the scenario's folder.
Result<void> write_perfetto(const harness::Evidence& evidence, const std::string& folder);
// In the run's folder; loads the evidence of what did not pass, as long as it can be shown.
Result<void> write_html(const reports::RunRecord& record, const std::string& run_directory);

}  // namespace savegate::cli
