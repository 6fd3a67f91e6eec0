// How a rank died, told apart on evidence.
#pragma once

#include <optional>

#include "harness/evidence.h"

namespace savegate::harness {

// Nothing where the rank left by itself, was ended by the runner or its launcher, or lived.
std::optional<Death> death_of(const Life& life, const RankProcess& process);
// A guard or the kernel killed the rank for what the job held of the host.
bool is_by_memory(std::optional<Death> death);
bool died_by_memory(const Life& life);  // any of its ranks

// The rank's first report that an allocation of its own on its device failed; an error with a path
// is that of a file operation.
const Event* out_of_memory_report(const Life& life, int rank);

}  // namespace savegate::harness
