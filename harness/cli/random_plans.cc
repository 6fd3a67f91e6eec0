#include "harness/cli/random_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "faults/trace.h"
#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/random_plan.h"
#include "reports/terminal.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using reports::Outcome;
using reports::ScenarioResult;

constexpr const char* kFolder = "/random-plans";

// Nothing where there is no clean life to make plans from: its result says why.
Result<std::optional<faults::Trace>> record_clean_life(Session& session, const Scenario& clean,
                                                       const harness::Subject& subject) {
  std::optional<ScenarioResult> recorded;
  SAVEGATE_CHECK(
      session.run_jobs({{.scenario = clean, .subject = subject}},
                       [&](std::size_t, const ScenarioResult& result) { recorded = result; }));
  if (!recorded) return std::nullopt;
  if (recorded->outcome != Outcome::kPass) {
    session.record(*recorded);
    session.progress().print(reports::render_scenario(*recorded, false));
    return std::nullopt;
  }
  SAVEGATE_TRY(faults::Trace trace, faults::read_trace(session.directory().path() + "/" +
                                                       recorded->directory + "/life-1/trace.bin"));
  return trace;
}

}  // namespace

Result<void> run_random_plans(Session& session, const Budget& budget,
                              const harness::Subject& subject, const RandomPlans& plans) {
  if (!budget.has_time() || harness::interrupted()) return {};
  const Scenario clean = harness::random_clean_scenario(plans.world);
  SAVEGATE_TRY(const std::optional<faults::Trace> trace,
               record_clean_life(session, clean, subject));
  if (!trace) return {};
  const std::string folder = session.directory().path() + kFolder;
  SAVEGATE_CHECK(harness::make_directories(folder));
  double longest = 0;  // seconds, of a plan
  std::uint64_t made = 0;
  std::size_t run = 0;
  std::size_t passed = 0;
  while (budget.has_time() && budget.fits(longest) && !harness::interrupted()) {
    std::vector<Job> jobs;
    for (int i = 0; i < plans.jobs; ++i) {
      auto scenario = harness::random_scenario(clean, *trace, plans.seed, ++made);
      if (!scenario) {
        session.progress().print("no random plans: " + scenario.error().text + "\n");
        return {};
      }
      SAVEGATE_CHECK(harness::write_file(fmt::format("{}/{}.toml", folder, scenario->name),
                                         harness::print_suite_of(*scenario)));
      jobs.push_back({.scenario = std::move(*scenario), .subject = subject});
    }
    SAVEGATE_CHECK(session.run_jobs(jobs, [&](std::size_t, const ScenarioResult& result) {
      if (result.outcome == Outcome::kSkip) return;  // the next one that the budget ended
      session.record(result);
      ++run;
      passed += result.outcome == Outcome::kPass ? 1 : 0;
      longest = std::max(longest, result.seconds.value_or(0));
      if (result.outcome != Outcome::kPass)
        session.progress().print(fmt::format("{}  plan: {}/{}.toml\n",
                                             reports::render_scenario(result, false), folder,
                                             result.scenario));
    }));
  }
  session.cover({.scenario = "plan", .known = run, .tried = run});
  session.progress().print(fmt::format(
      "random plans: {} run, {} passed; --seed {} makes the same\n", run, passed, plans.seed));
  return {};
}

}  // namespace savegate::cli
