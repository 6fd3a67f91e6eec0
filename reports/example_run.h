// A run record with something of everything, for tests of its renderings.
#pragma once

#include <utility>

#include "reports/result.h"

namespace savegate::reports {

inline ScenarioResult example_scenario(std::string name, Outcome outcome) {
  ScenarioResult result;
  result.suite = "smoke";
  result.scenario = std::move(name);
  result.summary = "Rank 1 runs out of space.";
  result.outcome = outcome;
  result.requirements = {"C1"};
  result.verdicts = {{.requirement = "C1",
                      .outcome = outcome,
                      .summary = "rank 0 says \"ok\" <of a failed save> & leaves",
                      .evidence = {"life 1 rank 0 events:14 save_end ok=true"}},
                     {.requirement = "F9",
                      .outcome = Outcome::kSkip,
                      .summary = "no crash states",
                      .evidence = {}}};
  result.fired = {{.life = 1, .rule = "disk full", .required = true, .hits = 3}};
  result.lives = {{.number = 1,
                   .until = "save 2",
                   .outcome = "mixed",
                   .seconds = 1.5,
                   .save_seconds = std::nullopt,
                   .restore_seconds = std::nullopt,
                   .bytes_saved = 4096,
                   .files = 3}};
  result.seed = 7;
  result.world = 2;
  result.directory = "smoke/" + result.scenario;
  result.repeat = "savegate run smoke/" + result.scenario + " --seed 7";
  result.seconds = 1.5;
  return result;
}

inline RunRecord example_run(const std::vector<Outcome>& outcomes) {
  RunRecord run;
  run.id = "2026-01-01T00-00-00-smoke";
  run.command = "savegate run smoke";
  run.provenance = {{"kernel", "6.1"}, {"gpu", "not obtained"}};
  for (const Outcome outcome : outcomes) {
    run.scenarios.push_back(
        example_scenario("scenario-" + std::to_string(run.scenarios.size()), outcome));
  }
  run.seconds = 3.0;
  return run;
}

// A sweep of `count` points, of which the first `failures` failed.
inline RunRecord example_sweep(std::size_t count, std::size_t failures) {
  RunRecord run = example_run({});
  for (std::size_t i = 0; i < count; ++i) {
    ScenarioResult point = example_scenario("every-write-000" + std::to_string(i + 1),
                                            i < failures ? Outcome::kFail : Outcome::kPass);
    point.point = "rank 1 write nth " + std::to_string(i + 1);
    run.scenarios.push_back(std::move(point));
  }
  run.coverage = {{.scenario = "every-write", .known = 10, .tried = count}};
  return run;
}

}  // namespace savegate::reports
