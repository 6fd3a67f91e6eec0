// What GitHub Actions shows of a run: annotations on its page, and a summary in Markdown.
#pragma once

#include <string>

#include "reports/result.h"

namespace savegate::reports {

// One workflow command a line: an error for each case that fails the run, the new ones first, a
// warning for each that is excused or flaky.
std::string github_annotations(const RunRecord& run);

std::string github_summary(const RunRecord& run);

}  // namespace savegate::reports
