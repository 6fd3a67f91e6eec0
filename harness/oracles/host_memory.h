// Host memory: M1 (recorded at every phase) and M3 (nothing grows from save to save).
#pragma once

#include "harness/evidence.h"
#include "reports/result.h"

namespace savegate::harness {

reports::Verdict host_memory_recorded(const Evidence& evidence);  // M1
reports::Verdict nothing_grows(const Evidence& evidence);         // M3

}  // namespace savegate::harness
