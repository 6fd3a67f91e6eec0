// F9: what was announced as saved is still there after the power went.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict survives_power_loss(const Evidence& evidence);  // F9

}  // namespace savegate::harness
