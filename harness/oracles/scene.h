// The scene of a scenario out of its evidence, for the pictures of reports.
#pragma once

#include "harness/evidence.h"
#include "reports/scene.h"

namespace savegate::harness {

reports::Scene scene_of(const Evidence& evidence);

}  // namespace savegate::harness
