// Whether a scenario can be run at all: with this subject, on that device, on this machine.
#pragma once

#include <string>

#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::harness {

// Why not; "" if it can. What a machine permits is found out by trying.
std::string not_runnable(const Scenario& scenario, const Subject& subject,
                         const std::string& device);

}  // namespace savegate::harness
