// Slices: no two ranks hold different bytes under the same key and range (F5).
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict disjoint_slices(const Evidence& evidence);

}  // namespace savegate::harness
