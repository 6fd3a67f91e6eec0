// C12, R1, R2, R3, R5: the job goes on as if it had never stopped.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict real_success(const Evidence& evidence);   // C12
reports::Verdict new_processes(const Evidence& evidence);  // R1
reports::Verdict whole_state(const Evidence& evidence);    // R2
reports::Verdict run_contract(const Evidence& evidence);   // R3
reports::Verdict real_update(const Evidence& evidence);    // R5

}  // namespace savegate::harness
