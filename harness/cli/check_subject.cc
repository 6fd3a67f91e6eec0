// `savegate check-subject`: one clean life, and what its events are worth.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/evidence.h"
#include "harness/oracles/conformance.h"
#include "harness/oracles/view.h"
#include "harness/run/sandbox.h"
#include "harness/run/scenario_runner.h"
#include "harness/run/store.h"

namespace savegate::cli {
namespace {

using harness::Conforms;

harness::Scenario clean_life(const Options& options) {
  harness::Scenario scenario;
  scenario.suite = "check-subject";
  scenario.name = "clean";
  scenario.summary = "One life to its first save: nothing goes wrong.";
  scenario.world = options.world.value_or(scenario.world);
  scenario.seed = options.seed.value_or(scenario.seed);
  harness::LifeSpec life;
  life.until = "save 1";
  life.expect.resumed = {"none"};
  scenario.lives.push_back(life);
  return scenario;
}

void print_finding(const harness::Finding& finding) {
  constexpr std::size_t kLinesShown = 5;
  std::string line = fmt::format("  {:<37}{:>5}  {:<8}", finding.part,
                                 finding.count == 0 ? "-" : std::to_string(finding.count),
                                 harness::conforms_name(finding.conforms));
  if (!finding.requirements.empty()) {
    line += fmt::format("  not judged: {}", fmt::join(finding.requirements, " "));
  }
  fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  const std::size_t shown = std::min(kLinesShown, finding.lines.size());
  for (std::size_t i = 0; i < shown; ++i) fmt::print("      {}\n", finding.lines[i]);
  if (finding.lines.size() > shown) fmt::print("      … {} more\n", finding.lines.size() - shown);
}

int print_findings(const std::vector<harness::Finding>& findings, const harness::Evidence& evidence,
                   const std::string& folder) {
  const auto how_many = [&](Conforms conforms) {
    return std::count_if(findings.begin(), findings.end(),
                         [=](const harness::Finding& each) { return each.conforms == conforms; });
  };
  if (findings.empty()) {
    fmt::print(
        "No rank wrote an event to SAVEGATE_EVENTS: files and processes alone can be judged.\n");
    for (const harness::Life& life : evidence.lives) {
      for (const std::string& line : harness::bad_ends(life)) fmt::print("      {}\n", line);
    }
    fmt::print("evidence: {}\n", folder);
    return kNothingProven;
  }
  for (const harness::Finding& finding : findings) print_finding(finding);
  const auto missing = how_many(Conforms::kMissing);
  const auto wrong = how_many(Conforms::kWrong);
  fmt::print("\n{}: {} missing, {} wrong, {} left out\nevidence: {}\n",
             missing + wrong == 0 ? "conforms" : "does not conform", missing, wrong,
             how_many(Conforms::kLeftOut), folder);
  return missing + wrong == 0 ? kPassed : kFailed;
}

Result<int> check(const Options& options) {
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  SAVEGATE_TRY(const harness::Subject subject, catalog.subject(options));
  const harness::Scenario scenario = clean_life(options);
  SAVEGATE_CHECK(check_fits(catalog, subject, {scenario}, options));
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(const harness::RunDirectory directory,
                   harness::RunDirectory::create(options.store, scenario.suite));
      harness::RunOptions run;
      run.store_directory = directory.path();
      run.backing = options.backing;
      run.device = options.device;
      run.bin = catalog.bin;
      SAVEGATE_TRY(const std::string folder, harness::run_scenario(scenario, subject, run));
      SAVEGATE_TRY(const harness::Evidence evidence, harness::load_evidence(folder));
      fmt::print("{}, {} rank{}, to its first save\n\n", subject.name, scenario.world,
                 scenario.world == 1 ? "" : "s");
      const int code = print_findings(harness::check_conformance(evidence), evidence, folder);
      const bool keep = options.keep == "all" || (options.keep == "failed" && code != kPassed);
      if (!keep) SAVEGATE_CHECK(harness::remove_trees(folder));
      return code;
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int check_subject_command(const Options& options) {
  Result<int> code = check(options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
