// What another process does just before an operation, so that the operation comes too late.
//
// The racer's effect is real: it is there on the backing directory before the operation is
// executed, and stays.
#pragma once

#include "faults/plan.h"
#include "fusefs/views.h"

namespace savegate::fusefs {

class FileSystem;

// 0, or the errno that kept the racer from it. An open is about the name that its node goes by.
int run_race(FileSystem& fs, faults::Race kind, faults::Op op, const Subject& subject);

}  // namespace savegate::fusefs
