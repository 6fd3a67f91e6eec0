// `savegate selftest`: each negative control must be caught by the oracle it names, and the sound
// save path must pass the same scenarios (H2).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "faults/json_text.h"
#include "harness/cli/catch_matrix.h"
#include "harness/cli/commands.h"
#include "harness/cli/controls.h"
#include "harness/cli/session.h"
#include "harness/oracles.h"
#include "harness/run/interrupt.h"
#include "harness/run/runnable.h"
#include "harness/run/sandbox.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using harness::Subject;
using reports::Outcome;
using reports::ScenarioResult;

// A control without arguments or a change to the store is broken by its scenario alone.
bool breaks_by_scenario(const Control& control) {
  return control.arguments.empty() && control.store.empty();
}

std::vector<std::string> ids_with(const ScenarioResult& result, Outcome outcome) {
  std::vector<std::string> ids;
  for (const reports::Verdict& verdict : result.verdicts)
    if (verdict.outcome == outcome) ids.push_back(verdict.requirement);
  return ids;
}

// Why the control cannot be shown on the device; "" if it can.
std::string unshowable(const Control& control, const Scenario& scenario, const Subject& subject,
                       const std::string& device) {
  const auto& devices = control.devices;
  if (!devices.empty() && std::find(devices.begin(), devices.end(), device) == devices.end())
    return fmt::format("it needs --device {}", fmt::join(devices, " or "));
  const auto runnable = harness::check_runnable(scenario, subject, device);
  return runnable ? "" : runnable.error().text;
}

struct Skip {
  std::string control;
  std::string reason;
};

struct Score {
  std::size_t caught = 0;
  std::size_t controls = 0;
  std::size_t sound_passed = 0;
  std::size_t sound = 0;
  std::vector<Skip> skipped;
  std::vector<CatchRow> matrix;
  nlohmann::json rows = nlohmann::json::array();
};

class Selftest {
 public:
  // Subjects by the name that a control gives, "" for the one that was asked for.
  Selftest(Session& session, std::map<std::string, Subject> subjects, std::vector<Control> controls,
           std::map<std::string, Scenario> scenarios)
      : session_(session),
        subjects_(std::move(subjects)),
        controls_(std::move(controls)),
        scenarios_(std::move(scenarios)) {}

  Result<Score> run(const std::string& device) {
    skip_unshowable(device);
    SAVEGATE_CHECK(run_sound());
    SAVEGATE_CHECK(run_controls());
    return score_;
  }

 private:
  void skip_unshowable(const std::string& device) {
    std::erase_if(controls_, [&](const Control& control) {
      const std::string reason = unshowable(control, scenarios_.at(control.scenario),
                                            subjects_.at(control.subject), device);
      if (reason.empty()) return false;
      score_.skipped.push_back({control.name, reason});
      session_.progress().print(fmt::format("{:<9} {:<32} {}\n", "skipped", control.name, reason));
      return true;
    });
  }

  Result<void> run_sound() {
    std::set<std::pair<std::string, std::string>> needed;  // scenario, subject
    for (const Control& control : controls_)
      if (!breaks_by_scenario(control)) needed.emplace(control.scenario, control.subject);
    std::vector<Job> jobs;
    jobs.reserve(needed.size());
    for (const auto& [scenario, subject] : needed)
      jobs.push_back({scenarios_.at(scenario), subjects_.at(subject)});
    score_.sound = jobs.size();
    return session_.run_jobs(jobs, [&](std::size_t i, const ScenarioResult& result) {
      const bool passed = result.outcome == Outcome::kPass;
      score_.sound_passed += passed ? 1 : 0;
      session_.progress().print(fmt::format(
          "{:<9} {:<32} the sound save path{}\n", passed ? "passed" : "NOT SOUND",
          jobs[i].scenario.suite + "/" + jobs[i].scenario.name,
          passed
              ? ""
              : fmt::format(": {} failed {}, invalid {}; {}", outcome_name(result.outcome),
                            fmt::join(ids_with(result, Outcome::kFail), " "),
                            fmt::join(ids_with(result, Outcome::kInvalid), " "), result.repeat)));
    });
  }

  Result<void> run_controls() {
    std::vector<Job> jobs;
    for (const Control& control : controls_) {
      Job job{scenarios_.at(control.scenario), subjects_.at(control.subject)};
      job.scenario.name = control.name;  // the folder's name in the store
      job.subject.command.insert(job.subject.command.end(), control.arguments.begin(),
                                 control.arguments.end());
      if (!control.store.empty())
        job.alter = [change = control.store](const std::string& folder) {
          return alter_store(change, folder);
        };
      jobs.push_back(std::move(job));
    }
    score_.controls = jobs.size();
    return session_.run_jobs(
        jobs, [&](std::size_t i, const ScenarioResult& result) { note(controls_[i], result); });
  }

  void note(const Control& control, const ScenarioResult& result) {
    const CatchRow row{control.name, control.caught_by, ids_with(result, control.verdict)};
    const bool caught = row.caught();
    const std::vector<std::string> others = row.others();
    score_.caught += caught ? 1 : 0;
    score_.matrix.push_back(row);
    score_.rows.push_back({{"control", control.name},
                           {"caught", caught},
                           {"by", control.caught_by},
                           {"others", others},
                           {"directory", result.directory}});
    session_.progress().print(fmt::format(
        "{:<9} {:<32} by {}{}{}\n", caught ? "caught" : "UNCAUGHT", control.name,
        fmt::join(control.caught_by, " "),
        others.empty() ? "" : fmt::format(", also {}", fmt::join(others, " ")),
        caught ? "" : "; evidence in " + session_.directory().path() + "/" + result.directory));
  }

  Session& session_;
  std::map<std::string, Subject> subjects_;
  std::vector<Control> controls_;
  std::map<std::string, Scenario> scenarios_;
  Score score_;
};

std::vector<std::string> judged_ids() {
  std::vector<std::string> ids;
  for (const harness::Oracle& oracle : harness::all_oracles()) ids.emplace_back(oracle.requirement);
  return ids;
}

// The matrix in the order of the controls' names, and, where all controls were run, which
// requirements have caught none of theirs.
std::string print_catches(std::vector<CatchRow> matrix, bool all_controls) {
  std::sort(matrix.begin(), matrix.end(),
            [](const CatchRow& a, const CatchRow& b) { return a.control < b.control; });
  std::vector<std::string> ids = judged_ids();
  std::string text = print_matrix(matrix, ids);
  if (!all_controls) return text;
  std::erase(ids, "expect");  // no requirement: what a scenario states of its lives
  const std::vector<std::string> left = without_a_catch(matrix, ids);
  return text + fmt::format("{} of {} requirements caught a control of theirs{}\n",
                            ids.size() - left.size(), ids.size(),
                            left.empty() ? "" : fmt::format("; not {}", fmt::join(left, " ")));
}

Result<int> report(Session& session, const Score& score, bool all_controls) {
  nlohmann::json skips = nlohmann::json::array();
  for (const Skip& skip : score.skipped)
    skips.push_back({{"control", skip.control}, {"reason", skip.reason}});
  const nlohmann::json record = {{"schema", 1},
                                 {"caught", score.caught},
                                 {"controls", score.controls},
                                 {"sound_passed", score.sound_passed},
                                 {"sound", score.sound},
                                 {"skipped", skips},
                                 {"rows", score.rows}};
  SAVEGATE_CHECK(session.directory().write("selftest.json", faults::json_text(record, 1)));
  SAVEGATE_CHECK(session.directory().publish());
  fmt::print("{}", print_catches(score.matrix, all_controls));
  fmt::print(
      "{} of {} negative controls caught{}, the sound save path passed {} of {} scenarios\n{}\n",
      score.caught, score.controls,
      score.skipped.empty() ? "" : fmt::format(" and {} skipped", score.skipped.size()),
      score.sound_passed, score.sound, session.directory().path());
  if (harness::interrupted()) return static_cast<int>(kInterrupted);
  if (score.controls == 0) return static_cast<int>(kNothingProven);
  const bool proven = score.caught == score.controls && score.sound_passed == score.sound;
  return static_cast<int>(proven ? kPassed : kFailed);
}

Result<std::vector<Control>> chosen_controls(const Catalog& catalog, const std::string& path,
                                             const std::vector<std::string>& names) {
  SAVEGATE_TRY(std::vector<Control> controls,
               load_controls(path.empty() ? catalog.data + "/controls/controls.toml" : path));
  for (const std::string& name : names)
    if (std::none_of(controls.begin(), controls.end(),
                     [&](const Control& control) { return control.name == name; }))
      return fail(
          invalid("no negative control `" + name + "`; `savegate list controls` shows all"));
  if (!names.empty())
    std::erase_if(controls, [&](const Control& control) {
      return std::find(names.begin(), names.end(), control.name) == names.end();
    });
  return controls;
}

Result<Subject> subject_of(const Control& control, const Catalog& catalog, Options options) {
  if (!control.subject.empty()) {
    options.subject = control.subject;
    options.command.clear();
  }
  return catalog.subject(options);
}

Result<int> selftest(const std::string& path, const std::vector<std::string>& names,
                     const Options& options) {
  SAVEGATE_TRY(Catalog catalog, find_catalog());
  SAVEGATE_TRY(std::vector<Control> controls, chosen_controls(catalog, path, names));
  std::map<std::string, Subject> subjects;
  std::map<std::string, Scenario> scenarios;
  for (const Control& control : controls) {
    if (!scenarios.contains(control.scenario)) {
      SAVEGATE_TRY(std::vector<Scenario> found,
                   select_scenarios(catalog, {control.scenario}, options));
      scenarios.emplace(control.scenario, std::move(found.front()));
    }
    SAVEGATE_TRY(Subject subject, subject_of(control, catalog, options));
    SAVEGATE_CHECK(check_fits(catalog, subject, {scenarios.at(control.scenario)}, options));
    subjects.emplace(control.subject, std::move(subject));
  }
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(auto session, Session::begin(catalog, options, "selftest", "savegate selftest"));
      Selftest test(*session, std::move(subjects), std::move(controls), std::move(scenarios));
      SAVEGATE_TRY(const Score score, test.run(options.device));
      return report(*session, score, path.empty() && names.empty());
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int selftest_command(const std::string& controls, const std::vector<std::string>& names,
                     const Options& options) {
  Result<int> code = selftest(controls, names, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
