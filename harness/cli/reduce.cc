// `savegate reduce`: the fewest rules, then the smallest world and state with which a scenario
// fails in the same way.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "faults/minimise.h"
#include "harness/cli/commands.h"
#include "harness/cli/reduction.h"
#include "harness/cli/scene.h"
#include "harness/cli/session.h"
#include "harness/run/interrupt.h"
#include "harness/run/sandbox.h"
#include "harness/run/scenario_runner.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using reports::Outcome;
using reports::ScenarioResult;

constexpr const char* kReducedFile = "reduced.toml";

struct Failing {
  Job job;
  Options options;
  std::optional<ScenarioResult> known;  // of a scene: what is to be seen again
};

std::string outcome_words(const ScenarioResult& result) {
  if (result.outcome == Outcome::kPass) return "passes";
  return fmt::format("{}", fmt::join(failures_of(result), ", "));
}

class Reducer {
 public:
  Reducer(Session& session, const Failing& failing)
      : session_(session), failing_(failing), smallest_(failing.job.scenario) {}

  // As it is: whether there is a failure to reduce.
  Result<void> run_whole() {
    SAVEGATE_TRY(whole_, run(smallest_));
    if (whole_) say(smallest_, outcome_words(*whole_));
    last_ = whole_;
    return {};
  }
  bool failed() const { return whole_ && whole_->outcome == Outcome::kFail; }
  bool failed_as_known() const {
    return failed() && (!failing_.known || fails_in_the_same_way(*failing_.known, *whole_));
  }

  Result<void> reduce() {
    claim_what_failed();
    SAVEGATE_CHECK(reduce_rules());
    SAVEGATE_CHECK(reduce_world());
    return reduce_state();
  }

  const std::optional<ScenarioResult>& whole() const { return whole_; }
  const std::optional<ScenarioResult>& last() const { return last_; }
  const Scenario& smallest() const { return smallest_; }

  std::string account() const {
    const Scenario& whole = failing_.job.scenario;
    std::string text = fmt::format("rules {} of {}, world {} of {}", rules_of(smallest_),
                                   rules_of(whole), smallest_.world, whole.world);
    const std::string state = state_of(smallest_);
    if (state.empty()) return text + "; the subject has no variable `state` with a size";
    return text + fmt::format(", state {} of {}", state, state_of(whole));
  }

 private:
  // What a smaller plan does not exercise any more, it must not claim.
  void claim_what_failed() {
    std::erase_if(smallest_.requirements, [&](const std::string& id) {
      return std::none_of(whole_->verdicts.begin(), whole_->verdicts.end(),
                          [&](const reports::Verdict& verdict) {
                            return verdict.requirement == id && verdict.outcome == Outcome::kFail;
                          });
    });
  }

  Result<void> reduce_rules() {
    const Scenario whole = smallest_;
    const std::vector<PlanItem> items = plan_items(whole);
    SAVEGATE_TRY(
        const auto kept,
        faults::fewest(items.size(), [&](const std::vector<std::size_t>& some) -> Result<bool> {
          const Scenario smaller = with_items(whole, items, some);
          if (!keeps_its_causes(smaller, whole)) return false;
          return fails(smaller);
        }));
    smallest_ = with_items(whole, items, kept);
    return {};
  }

  Result<void> reduce_world() {
    const std::vector<int> worlds = worlds_to_try(smallest_, failing_.job.subject);
    const auto with_world = [whole = smallest_](int world) {
      Scenario smaller = whole;
      smaller.world = world;
      return smaller;
    };
    SAVEGATE_TRY(const std::size_t chosen, faults::smallest(worlds.size(), [&](std::size_t i) {
                   return fails(with_world(worlds[i]));
                 }));
    smallest_ = with_world(worlds[chosen]);
    return {};
  }

  Result<void> reduce_state() {
    const std::vector<std::string> states = states_to_try(smallest_, failing_.job.subject);
    if (states.empty()) return {};
    const auto with_state = [whole = smallest_](const std::string& state) {
      Scenario smaller = whole;
      smaller.variables[kStateVariable] = state;
      return smaller;
    };
    SAVEGATE_TRY(const std::size_t chosen, faults::smallest(states.size(), [&](std::size_t i) {
                   return fails(with_state(states[i]));
                 }));
    smallest_ = with_state(states[chosen]);
    return {};
  }

  // After an interrupt nothing smaller fails any more: the search ends with what it has.
  Result<bool> fails(const Scenario& smaller) {
    SAVEGATE_TRY(const std::optional<ScenarioResult> result, run(smaller));
    if (!result) return false;
    const bool same = fails_in_the_same_way(*whole_, *result);
    say(smaller, same ? "fails in the same way" : outcome_words(*result));
    SAVEGATE_CHECK(drop_trees(same ? *last_ : *result));
    if (same) last_ = result;
    return same;
  }

  Result<std::optional<ScenarioResult>> run(const Scenario& scenario) {
    std::optional<ScenarioResult> result;
    if (harness::interrupted()) return result;
    Job job = failing_.job;
    job.scenario = scenario;
    SAVEGATE_CHECK(session_.run_jobs({job}, [&](std::size_t, const auto& ran) { result = ran; }));
    return result;
  }

  // Of many that fail, the trees of the smallest are enough; those that passed have none.
  Result<void> drop_trees(const ScenarioResult& result) {
    if (failing_.options.keep != "failed" || result.outcome == Outcome::kPass) return {};
    return harness::remove_trees(session_.directory().path() + "/" + result.directory);
  }

  void say(const Scenario& scenario, const std::string& what) {
    const std::string state = state_of(scenario);
    session_.progress().print(fmt::format("rules {}, world {}{}: {}\n", rules_of(scenario),
                                          scenario.world, state.empty() ? "" : ", state " + state,
                                          what));
  }

  std::string state_of(const Scenario& scenario) const {
    const std::vector<std::string> states = states_to_try(scenario, failing_.job.subject);
    return states.empty() ? "" : states.back();
  }

  // Budgets are rules too.
  static std::size_t rules_of(const Scenario& scenario) {
    std::size_t count = 0;
    for (const harness::LifeSpec& life : scenario.lives)
      count += life.plan.rules.size() + life.plan.budgets.size();
    return count;
  }

  Session& session_;
  const Failing& failing_;
  std::optional<ScenarioResult> whole_;  // of the scenario as it was given
  std::optional<ScenarioResult> last_;   // that failed in the same way
  Scenario smallest_;
};

Result<Failing> find_failing(const Catalog& catalog, const std::string& name, bool of_its_own,
                             const Options& options) {
  Failing failing;
  if (std::filesystem::is_directory(name)) {
    Options given = options;
    if (of_its_own) given.subject.clear();
    SAVEGATE_TRY(const Scene scene, load_scene(catalog, name, given));
    failing.options = options_of(scene, given);
    failing.job = job_of(scene);
    failing.known = scene.result;
    return failing;
  }
  failing.options = options;
  SAVEGATE_TRY(failing.job.subject, catalog.subject(options));
  SAVEGATE_TRY(failing.job.scenario,
               select_one_scenario(catalog, name, failing.job.subject, options));
  return failing;
}

// The subject of a scene is known by the folder of its run alone.
std::string how_to_run(const Failing& failing, const std::string& run, const ScenarioResult& last) {
  if (failing.known) return fmt::format("savegate replay {}/{}", run, last.directory);
  Options options = failing.options;
  options.world.reset();  // as reduced
  options.seed.reset();
  return fmt::format("savegate run {}/{}{}", run, kReducedFile, option_words(options));
}

Result<int> conclude_reduction(const Reducer& reducer, const Failing& failing,
                               const std::string& run) {
  const std::optional<ScenarioResult>& whole = reducer.whole();
  if (!whole) return static_cast<int>(kInterrupted);
  if (!reducer.failed_as_known()) {
    fmt::print("reduce: there is nothing to reduce: it {}{}\n",
               whole->outcome == Outcome::kPass ? "passes" : "shows " + outcome_words(*whole),
               failing.known ? "; the scene: " + outcome_words(*failing.known) : "");
    return whole->outcome == Outcome::kPass ? static_cast<int>(kPassed)
                                            : static_cast<int>(kNothingProven);
  }
  fmt::print("reduce: {}: {}\nreduce: {}/{}; repeat with: {}\n", reducer.account(),
             outcome_words(*reducer.last()), run, kReducedFile,
             how_to_run(failing, run, *reducer.last()));
  return harness::interrupted() ? static_cast<int>(kInterrupted) : static_cast<int>(kFailed);
}

Result<int> run_reduction(const Catalog& catalog, const Failing& failing,
                          const std::string& command) {
  SAVEGATE_TRY(auto session, Session::begin(catalog, failing.options, "reduce", command));
  const std::string& run = session->directory().path();
  Reducer reducer(*session, failing);
  SAVEGATE_CHECK(reducer.run_whole());
  if (reducer.failed_as_known()) {
    SAVEGATE_CHECK(reducer.reduce());
    SAVEGATE_CHECK(
        session->directory().write(kReducedFile, harness::print_suite_of(reducer.smallest())));
  }
  if (reducer.last()) {
    ScenarioResult last = *reducer.last();
    last.repeat = how_to_run(failing, run, last);
    session->record(last);
  }
  SAVEGATE_CHECK(session->finish());  // its exit code is of a run; what counts is what was reduced
  return conclude_reduction(reducer, failing, run);
}

Result<int> reduce(const std::string& name, bool of_its_own, const Options& options) {
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  SAVEGATE_TRY(const Failing failing, find_failing(catalog, name, of_its_own, options));
  SAVEGATE_CHECK(check_fits(catalog, failing.job.subject, {failing.job.scenario}, failing.options));
  const std::string command =
      "savegate reduce " + name + (failing.known ? "" : option_words(options));
  return harness::run_in_sandbox([&]() -> int {
    Result<int> code = run_reduction(catalog, failing, command);
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int reduce_command(const std::string& scenario_or_scene, bool of_its_own, const Options& options) {
  Result<int> code = reduce(scenario_or_scene, of_its_own, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
