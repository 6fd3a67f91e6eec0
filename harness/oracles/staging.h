// Staging: the host memory that a save took for its snapshot is given back after it (M4).
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict staging_given_back(const Evidence& evidence);

}  // namespace savegate::harness
