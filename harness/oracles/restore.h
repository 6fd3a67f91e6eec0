// C5, C7, C8, C10: what a job comes back from, after damage and after kills.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict refuse_together(const Evidence& evidence);  // C5
reports::Verdict no_fresh_start(const Evidence& evidence);   // C7
reports::Verdict expected_step(const Evidence& evidence);    // C8
reports::Verdict survives_kills(const Evidence& evidence);   // C10

}  // namespace savegate::harness
