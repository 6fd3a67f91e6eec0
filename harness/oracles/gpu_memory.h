// GPU memory: recorded around every phase (G1), given back after a load (G2) and a save (G3); and
// an allocator that tries again is not out of memory (G4).
//
// Judged from `memory` events alone; what another allocator could get, a probe process must have
// found out.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict gpu_memory_recorded(const Evidence& evidence);    // G1
reports::Verdict load_gives_cache_back(const Evidence& evidence);  // G2
reports::Verdict others_can_allocate(const Evidence& evidence);    // G3
reports::Verdict retry_is_no_end(const Evidence& evidence);        // G4

bool runs_on_gpu(const Evidence& evidence);  // by the ranks' own account

}  // namespace savegate::harness
