// Changes made to the checkpoint tree between two lives: what a crash, a disk or a person could
// have done to files that a save path thought safe.
#pragma once

#include <string>

#include "faults/status.h"
#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::harness {

// Does it, below `root`, and says what was done: "flip step_2/shard-1.safetensors byte 4096". The
// file is the one of that role and rank in the checkpoint that the pointer names, or else in the
// highest step; an error says why there is none.
Result<std::string> apply_tamper(const Tamper& tamper, const Subject& subject,
                                 const std::string& root);

}  // namespace savegate::harness
