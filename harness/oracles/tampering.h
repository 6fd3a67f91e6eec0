// What was damaged before a life began, and what a rule damaged on its way in during the restore.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/oracles/view.h"

namespace savegate::harness {

struct DamagedFile {
  std::string path;
  faults::Role role = faults::Role::kNone;
  std::optional<std::int64_t> step;
  std::string how;  // quoted: "flip step_2/shard-1 byte 4096"
};

// Files that differ between the end of the life before and the launch of this one.
std::vector<DamagedFile> damaged_files(const View& view, std::size_t life_index);

// Steps of which a file was damaged by then and not saved again since: what is read of them says
// nothing of how they were written.
std::set<std::int64_t> damaged_steps(const View& view, std::size_t up_to_life);

// Reads of the restore that a rule corrupted or failed, quoted.
std::vector<std::string> damaged_reads(const Life& life);

// A rule lied about a sync: the disk said that it had what it had not, and no save path can know.
bool disk_lied(const Life& life);

}  // namespace savegate::harness
