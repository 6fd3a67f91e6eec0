// The manifest: size and digest of every evidence file of a scenario, so that evidence which was
// changed, cut or lost after it was collected is never judged as if it were whole (H5).
//
// manifest.json maps each path below the scenario's directory to {bytes, digest}, the digest being
// XXH3-128 in canonical hex. Not in it: itself, result.json and scene/ (written after judging) and
// work/ (the tree that the next life goes on using).
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::harness {

// One line for each file that is missing, altered or not in the manifest; empty: all as collected.
std::vector<std::string> check_manifest(const std::string& scenario_directory);

}  // namespace savegate::harness
