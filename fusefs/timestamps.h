// Times of a file as a mount with another clock, or a coarser one, reports them.
#pragma once

#include <sys/stat.h>

#include "faults/plan.h"

namespace savegate::fusefs {

void apply(const faults::TimestampsAction& action, struct stat& attributes);

}  // namespace savegate::fusefs
