// What happened in a life, in the words that a scenario expects it in.
#pragma once

#include <string>

#include "harness/oracles/view.h"

namespace savegate::harness {

// "complete", "fail-together", "refuse-together", "killed", "held", "hung" (the runner had to end a
// rank that no rule held) or "mixed" (the ranks did different things).
std::string outcome_of(const View& view, const Life& life);

// The life shows what was expected of it: several may hold at once, as where a killed rank makes
// the save of the others fail.
bool shows(const View& view, const Life& life, harness::Outcome expected);

// The rank reached `until` ("save 2"): that save or a later one succeeded on it, or it resumed
// there.
bool reached_until(const View& view, const Life& life, int rank);

// "expect": each life's outcome is the one that the scenario states.
reports::Verdict expected_outcome(const Evidence& evidence);

}  // namespace savegate::harness
