// H: the harness judges itself before it judges anybody.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict executed_faults(const Evidence& evidence);        // H1
reports::Verdict bound_to_what_was_run(const Evidence& evidence);  // H4
reports::Verdict evidence_unaltered(const Evidence& evidence);     // H5
reports::Verdict measured_not_guessed(const Evidence& evidence);   // H6
reports::Verdict identified_items(const Evidence& evidence);       // H7

}  // namespace savegate::harness
