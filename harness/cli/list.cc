#include <fmt/format.h>

#include "faults/presets.h"
#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/cli/controls.h"
#include "harness/cli/requirement_table.h"

namespace savegate::cli {
namespace {

// Each with its values and their defaults, and the plan that they make.
Result<void> list_presets() {
  for (const faults::Preset& preset : faults::all_presets()) {
    fmt::print("{:<20} {}\n", preset.name, preset.summary);
    for (const faults::PresetParameter& parameter : preset.parameters)
      fmt::print("  {} = {}: {}\n", parameter.name, parameter.otherwise, parameter.meaning);
    SAVEGATE_TRY(const faults::Plan plan, faults::preset_plan(preset.name, {}));
    fmt::print("\n{}\n", faults::print_plan(plan));
  }
  return {};
}

Result<void> list(const std::string& what, bool markdown) {
  if (markdown && what != "requirements")
    return fail(invalid("--markdown is for `savegate list requirements`"));
  if (what == "presets") return list_presets();
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  if (what == "requirements") {
    SAVEGATE_TRY(const std::vector<RequirementRow> rows, requirement_table(catalog));
    fmt::print("{}", markdown ? print_requirements_markdown(rows) : print_requirements(rows));
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

int list_command(const std::string& what, bool markdown) {
  auto listed = list(what, markdown);
  return listed ? kPassed : report_error(listed.error());
}

}  // namespace savegate::cli
