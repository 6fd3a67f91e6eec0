// Ids in files that users write, against those that savegate judges: a misspelt one would be told
// only after the run, or never.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::cli {

// "C1", …: all that a verdict of a scenario can have.
const std::vector<std::string>& requirement_ids();

// Each is one of these, and none is there twice. `where` is what the error begins with.
Result<void> check_requirement_ids(const std::vector<std::string>& ids, const std::string& where);

}  // namespace savegate::cli
