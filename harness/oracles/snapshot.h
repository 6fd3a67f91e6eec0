// Asynchronous saves: what is written while training goes on is the state as of the call (G5).
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict consistent_snapshot(const Evidence& evidence);

}  // namespace savegate::harness
