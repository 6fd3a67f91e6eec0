// The order and the marks of events that docs/subject-contract.md asks for, without which the other
// oracles would look for them in the wrong place and find nothing.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence.h"

namespace savegate::harness {

// What the ranks' events break of the contract, one quoted line each.
std::vector<std::string> broken_protocol(const Life& life);

}  // namespace savegate::harness
