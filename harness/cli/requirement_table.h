// Every requirement with what judges it, what exercises it and what it has caught: one table, from
// the registry of oracles, the suites and the negative controls. docs/requirements.md shows it.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/cli/catalog.h"

namespace savegate::cli {

struct RequirementRow {
  std::string id;
  std::string rule;
  std::string judged_by;               // an oracle's name, or a command
  bool by_command = false;             // judged over a whole run, or before one
  std::string evidence;                // what it goes by
  std::vector<std::string> scenarios;  // that claim it
  std::vector<std::string> controls;   // that it catches
  std::string devices;                 // that the controls can be shown on: "CPU and GPU"
};

Result<std::vector<RequirementRow>> requirement_table(const Catalog& catalog);

std::string print_requirements(const std::vector<RequirementRow>& rows);
std::string print_requirements_markdown(const std::vector<RequirementRow>& rows);

}  // namespace savegate::cli
