// C4, C9: what becomes of a step's directory that is there already: saved again, or rotated out.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict uncommitted_first(const Evidence& evidence);  // C4
reports::Verdict rotation_spares(const Evidence& evidence);    // C9

}  // namespace savegate::harness
