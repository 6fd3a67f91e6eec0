// The reader: what a fresh process sees of the checkpoints on disk, one JSON line for each.
//
// It checks all that a restore of every rank would, digests each item from the bytes that it read,
// and writes nothing.
#pragma once

#include <string>

#include "faults/status.h"

namespace savegate::reference {

// The lines, in the order of steps; an error only if `root` itself cannot be listed.
Result<std::string> read_checkpoints(const std::string& root);

}  // namespace savegate::reference
