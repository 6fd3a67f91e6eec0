// The live view: what runs at this moment, as lines for a terminal.
//
//   [13/53] 41 s, 1 did not pass
//   smoke/kill-mid-shard  life 1 until save 2, 0.8 s, 1 fired
//     rank 0 save_begin, step 2 · rank 1 ended by signal 9
//     waiting for all ranks to leave after the first failure, 9.2 s left
//
// Pure: Progress draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/run/supervisor.h"

namespace savegate::cli {

struct LiveState {
  std::size_t expected = 0;
  std::size_t ended = 0;
  std::size_t did_not_pass = 0;
  std::uint64_t elapsed_ns = 0;
  // Of each scenario that runs, in the order of names; life 0: none has begun.
  std::map<std::string, harness::LifeProgress> running;
};

// At most `rows` lines, none longer than `columns`; what has no room is counted.
std::vector<std::string> live_lines(const LiveState& state, std::size_t columns, std::size_t rows);

// The same in one line, where nothing can be redrawn.
std::string live_line(const LiveState& state);

}  // namespace savegate::cli
