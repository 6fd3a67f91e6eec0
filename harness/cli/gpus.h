// The GPUs of this machine, as its driver counts them.
#pragma once

#include "faults/status.h"

namespace savegate::cli {

// Asked for in a process of its own: the driver must not be at work in the one that forks ranks.
// Unavailable, with the reason, where there is none.
Result<int> count_gpus();

}  // namespace savegate::cli
