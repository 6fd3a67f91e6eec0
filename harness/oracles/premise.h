// What a scenario presumes of a life: that its faults, limits and damage met what they were meant
// for.
#pragma once

#include "harness/oracles/view.h"

namespace savegate::harness {

// Every required rule fired on the save that it names, all tampering was done, every limit was met,
// and who was to kill for memory did: what is stated of the life can hold.
bool was_put_to_the_test(const View& view, const Life& life);

// The limits that no rank ran into, one line each.
std::vector<std::string> unmet_limits(const Life& life);

// Hits of rules for "save N" on a file of another save that was still under way: the phase is that
// of the save begun last. One line each.
std::vector<std::string> strayed_hits(const View& view, const Life& life);

}  // namespace savegate::harness
