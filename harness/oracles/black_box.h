// What is judged of a program that tells nothing of itself: its processes and its files.
#pragma once

#include "harness/oracles/view.h"

namespace savegate::harness {

// C10 by resumability: the life after a kill, started on what the kill left, runs to its end.
reports::Verdict resumes_after_kills(const Evidence& evidence);

// F3 by names and sizes: a life that ended well leaves no new temporary file and no empty shard.
reports::Verdict leaves_whole_files(const Evidence& evidence);

// C3 by the trace: no pointer gets a new value after an error that made its rank leave.
reports::Verdict pointer_stays_after_errors(const Evidence& evidence);

// The rank left with exit status 0: all that it did is called a success by that.
bool ended_well(const Life& life, int rank);

}  // namespace savegate::harness
