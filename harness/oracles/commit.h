// C1, C3, C6: a save is one decision of all ranks.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict fail_together(const Evidence& evidence);     // C1
reports::Verdict tracker_stays(const Evidence& evidence);     // C3
reports::Verdict same_collectives(const Evidence& evidence);  // C6

}  // namespace savegate::harness
