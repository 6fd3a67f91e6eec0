// What was damaged before a life began, and what a rule damaged on its way in during the restore.
#pragma once

#include <optional>
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

// Reads of the restore that a rule corrupted or failed, quoted.
std::vector<std::string> damaged_reads(const Life& life);

}  // namespace savegate::harness
