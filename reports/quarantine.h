// Quarantine: failures that are known and agreed on, until a date, for a reason.
//
//   [[quarantine]]
//   scenario = "kill-sweep/*"          # of a sweep: all its points
//   subject  = "my-save-path"          # absent: any
//   ids      = ["C10"]                 # absent: whatever fails
//   until    = 2026-12-31              # the last day
//   reason   = "the marker is written before the shards"
//   issue    = "https://…/123"         # absent: none
//
// A failure is excused only where every id that failed is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "faults/layout.h"
#include "faults/status.h"
#include "reports/result.h"

namespace savegate::reports {

struct QuarantineEntry {
  faults::Glob scenario;  // of "suite/scenario"
  std::string subject;
  std::vector<std::string> ids;
  Quarantine terms;
  std::string where;  // "savegate-quarantine.toml:3:1"
};

Result<std::vector<QuarantineEntry>> parse_quarantine(std::string_view toml,
                                                      std::string_view source_name);

// Sets the standing's quarantine of what did not pass. `today` is "2026-12-31", in UTC. The lines
// say which entries named nothing that was run, or nothing that failed.
std::vector<std::string> apply_quarantine(RunRecord& run,
                                          const std::vector<QuarantineEntry>& entries,
                                          std::string_view today);

}  // namespace savegate::reports
