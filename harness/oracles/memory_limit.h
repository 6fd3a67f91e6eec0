// M2: the job stays below its limit × the guard's threshold, and a death is named as what it was.
#pragma once

#include "harness/evidence.h"
#include "reports/result.h"

namespace savegate::harness {

// Judged where a life has a limit, or says how its ranks die.
reports::Verdict within_memory_limit(const Evidence& evidence);

}  // namespace savegate::harness
