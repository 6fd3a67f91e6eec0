// Negative controls: save paths broken on purpose, and the oracle that must catch each.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "reports/result.h"

namespace savegate::cli {

struct Control {
  std::string name;
  std::string breaks;                  // what is wrong with it
  std::string scenario;                // "suite/scenario"
  std::string subject;                 // "": the one that selftest was asked for
  std::vector<std::string> devices;    // where it can be shown; empty: on all
  std::vector<std::string> arguments;  // added to the subject's command
  std::string store;  // "" or a change to the collected evidence, see alter_store()
  std::vector<std::string> caught_by;  // requirement ids
  reports::Outcome verdict = reports::Outcome::kFail;
};

Result<std::vector<Control>> load_controls(const std::string& toml_path);

// Changes the collected evidence of one scenario, as a harness that is not honest would:
// "empty-fired-records", "drop-provenance", "alter-events", "empty-memory-records".
Result<void> alter_store(const std::string& change, const std::string& scenario_directory);

}  // namespace savegate::cli
