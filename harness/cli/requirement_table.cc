#include "harness/cli/requirement_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/cli/controls.h"
#include "harness/oracles.h"

namespace savegate::cli {
namespace {

using harness::Scenario;

// What no oracle of one scenario judges.
const std::vector<RequirementRow>& judged_by_commands() {
  static const std::vector<RequirementRow> kRows = {
      {.id = "H2",
       .rule = "Every oracle is shown to fail on a save path that has the fault.",
       .judged_by = "savegate selftest",
       .by_command = true,
       .evidence = "the verdicts of every negative control, and of the sound save path",
       .scenarios = {},
       .controls = {},
       .devices = "CPU and GPU"},
      {.id = "H3",
       .rule = "One factor is changed at a time, and of two nothing is concluded.",
       .judged_by = "savegate loop --vary",
       .by_command = true,
       .evidence = "failures of each arm, which differs from the baseline in one factor",
       .scenarios = {},
       .controls = {},
       .devices = "CPU and GPU"},
      {.id = "C11",
       .rule =
           "As many saves in a row as exclude the failure probability, then kill, resume, save.",
       .judged_by = "savegate signoff",
       .by_command = true,
       .evidence = "the verdicts of a whole run, its saves counted",
       .scenarios = {},
       .controls = {},
       .devices = "CPU and GPU"},
      {.id = "M6",
       .rule = "What a save will need is known before it runs.",
       .judged_by = "savegate estimate",
       .by_command = true,
       .evidence =
           "shard headers, sizes of files; a test holds them against the measured peak of a save "
           "([memory.md](memory.md))",
       .scenarios = {},
       .controls = {},
       .devices = "CPU and GPU"},
  };
  return kRows;
}

// "C10" after "C9"; what is no id comes last.
std::pair<std::size_t, int> place_of(const std::string& id) {
  const std::size_t group = std::string("HFCRMG").find(id.front());
  if (group == std::string::npos) return {group, 0};
  return {group, std::atoi(id.c_str() + 1)};
}

// Where the controls can be shown.
std::string devices_of(const std::vector<const Control*>& controls) {
  std::set<std::string> devices;
  for (const Control* control : controls) {
    if (control->devices.empty()) devices.insert({"cpu", "cuda"});
    devices.insert(control->devices.begin(), control->devices.end());
  }
  if (devices.contains("cpu") && devices.contains("cuda")) return "CPU and GPU";
  if (devices.contains("cpu"))
    return devices.contains("simulated") ? "CPU, simulated device" : "CPU";
  if (devices.contains("cuda")) return "GPU, simulated device";
  if (devices.contains("simulated")) return "simulated device";
  return "";
}

// One of a suite by its name, several by their number.
std::vector<std::string> by_suite(const std::vector<const Scenario*>& scenarios) {
  std::vector<std::string> named;
  std::map<std::string, int> counts;
  for (const Scenario* scenario : scenarios) ++counts[scenario->suite];
  for (const Scenario* scenario : scenarios) {
    const int count = counts[scenario->suite];
    std::string name = count == 1 ? scenario->suite + "/" + scenario->name
                                  : fmt::format("{} ({})", scenario->suite, count);
    if (named.empty() || named.back() != name) named.push_back(std::move(name));
  }
  return named;
}

std::string joined(const std::vector<std::string>& names, const char* none) {
  return names.empty() ? none : fmt::format("{}", fmt::join(names, ", "));
}

std::string scenarios_of(const RequirementRow& row) {
  return joined(row.scenarios, row.by_command ? "–" : "all");
}

}  // namespace

Result<std::vector<RequirementRow>> requirement_table(const Catalog& catalog) {
  SAVEGATE_TRY(const std::vector<Control> controls,
               load_controls(catalog.data + "/controls/controls.toml"));
  std::vector<Scenario> scenarios;
  for (const std::string& name : catalog.suite_names()) {
    SAVEGATE_TRY(harness::Suite suite, catalog.suite(name));
    for (Scenario& scenario : suite.scenarios)
      if (scenario.suite == suite.name) scenarios.push_back(std::move(scenario));
  }

  std::vector<RequirementRow> rows = judged_by_commands();
  for (const harness::Oracle& oracle : harness::all_oracles()) {
    RequirementRow row;
    row.id = oracle.requirement;
    row.rule = oracle.rule;
    row.judged_by = oracle.name;
    row.evidence = oracle.evidence;
    std::vector<const Scenario*> claiming;
    for (const Scenario& scenario : scenarios) {
      const auto& claimed = scenario.requirements;
      if (std::find(claimed.begin(), claimed.end(), row.id) != claimed.end())
        claiming.push_back(&scenario);
    }
    row.scenarios = by_suite(claiming);
    std::vector<const Control*> catching;
    for (const Control& control : controls) {
      const auto& named = control.caught_by;
      if (std::find(named.begin(), named.end(), row.id) == named.end()) continue;
      catching.push_back(&control);
      row.controls.push_back(control.name);
    }
    row.devices = devices_of(catching);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const RequirementRow& a, const RequirementRow& b) {
    return place_of(a.id) < place_of(b.id);
  });
  return rows;
}

std::string print_requirements(const std::vector<RequirementRow>& rows) {
  std::string text;
  for (const RequirementRow& row : rows) {
    text += fmt::format("{:<7}{}\n", row.id, row.rule);
    const auto line = [&](const char* name, const std::string& value) {
      text += fmt::format("       {:<10} {}\n", name, value);
    };
    line(row.by_command ? "command" : "oracle", row.judged_by);
    line("evidence", row.evidence);
    line("scenarios", scenarios_of(row));
    line("controls", joined(row.controls, "–"));
    line("devices", row.devices.empty() ? "–" : row.devices);
  }
  return text;
}

std::string print_requirements_markdown(const std::vector<RequirementRow>& rows) {
  std::string text =
      "| id | rule | judged by | evidence | scenarios | controls | devices |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const RequirementRow& row : rows) {
    text += fmt::format("| {} | {} | `{}` | {} | {} | {} | {} |\n", row.id, row.rule, row.judged_by,
                        row.evidence, scenarios_of(row), joined(row.controls, "–"),
                        row.devices.empty() ? "–" : row.devices);
  }
  return text;
}

}  // namespace savegate::cli
