// What a short-lived tool prints.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::harness {

// Its standard output without the last newline; what it says on the other one is dropped. An error,
// with what it printed, where it cannot be started, does not end within 10 s or leaves with another
// status than 0.
Result<std::string> output_of(const std::vector<std::string>& command,
                              const std::string& directory = "");

}  // namespace savegate::harness
