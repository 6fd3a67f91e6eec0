// Times and sizes of a life, for the report; what the evidence does not hold is not obtained.
#pragma once

#include "harness/oracles/view.h"

namespace savegate::harness {

reports::LifeSummary summarise(const View& view, const Life& life);

}  // namespace savegate::harness
