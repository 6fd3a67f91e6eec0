#include <fmt/format.h>

#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/cli/controls.h"
#include "harness/oracles.h"

namespace savegate::cli {
namespace {

Result<void> list(const std::string& what) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  if (what == "requirements") {
    for (const harness::Oracle& oracle : harness::all_oracles())
      fmt::print("{:<4} {}\n", oracle.requirement, oracle.rule);
    return {};
  }
  if (what == "controls") {
    SAVEGATE_TRY(std::vector<Control> controls,
                 load_controls(catalog.data + "/controls/controls.toml"));
    for (const Control& control : controls)
      fmt::print("{:<30} {:<5} {}\n", control.name, fmt::join(control.caught_by, " "),
                 control.breaks);
    return {};
  }
  if (what == "subjects") {
    for (const std::string& name : catalog.subject_names()) {
      Options options;
      options.subject = name;
      SAVEGATE_TRY(harness::Subject subject, catalog.subject(options));
      fmt::print("{:<20} {}\n", subject.name, subject.summary);
    }
    return {};
  }
  for (const std::string& name : catalog.suite_names()) {
    SAVEGATE_TRY(harness::Suite suite, catalog.suite(name));
    fmt::print("{:<12} {}\n", suite.name, suite.summary);
    if (what != "scenarios") continue;
    for (const harness::Scenario& scenario : suite.scenarios)
      fmt::print("  {:<40} {}\n", suite.name + "/" + scenario.name, scenario.summary);
  }
  return {};
}

}  // namespace

int list_command(const std::string& what) {
  auto listed = list(what);
  return listed ? kPassed : report_error(listed.error());
}

}  // namespace savegate::cli
