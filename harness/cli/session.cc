#include "harness/cli/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "faults/trace.h"
#include "harness/applicable.h"
#include "harness/cli/gate.h"
#include "harness/cli/html_report.h"
#include "harness/cli/report.h"
#include "harness/evidence.h"
#include "harness/oracles.h"
#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/provenance.h"
#include "harness/run/python.h"
#include "harness/run/runnable.h"
#include "harness/run/scenario_runner.h"
#include "harness/run/sweep.h"
#include "reports/terminal.h"

namespace savegate::cli {
namespace {

using harness::Scenario;
using harness::Subject;
using reports::Outcome;
using reports::ScenarioResult;

double seconds_since(std::uint64_t start_ns) {
  return static_cast<double>(harness::monotonic_ns() - start_ns) / 1e9;
}

// Relative where that is shorter to type.
std::string as_typed(const std::string& path) {
  const std::string relative = std::filesystem::proximate(path).string();
  return relative.starts_with("..") ? path : relative;
}

// As a POSIX shell reads it back word for word.
std::string shell_command(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "-_./=:,+@%") == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += '\'';
  }
  return line;
}

constexpr std::size_t kFreshPointEvery = 8;  // of a sweep over forked programs

bool is_sweep_point(const ScenarioResult& result) { return !result.point.empty(); }

}  // namespace

Session::Session(Catalog catalog, Options options, harness::RunDirectory directory,
                 std::string command_line)
    : catalog_(std::move(catalog)),
      options_(std::move(options)),
      directory_(std::move(directory)),
      fork_servers_({"SAVEGATE_DEVICE=" + options_.device, harness::python_path(catalog_.bin)},
                    directory_.path()),
      progress_(options_.verbosity),
      started_ns_(harness::monotonic_ns()) {
  record_.id = directory_.id();
  record_.command = std::move(command_line);
  record_.device = options_.device;
  record_.provenance =
      harness::machine_provenance(options_.backing.empty() ? directory_.path() : options_.backing);
}

Result<std::unique_ptr<Session>> Session::begin(const Catalog& catalog, const Options& options,
                                                const std::string& name,
                                                const std::string& command_line) {
  SAVEGATE_TRY(harness::RunDirectory directory, harness::RunDirectory::create(options.store, name));
  return std::unique_ptr<Session>(
      new Session(catalog, options, std::move(directory), command_line));
}

std::string Session::repeat_command(const std::string& folder, const std::string& backing) const {
  std::vector<std::string> words = {as_typed(catalog_.bin + "/savegate"), "run",
                                    folder + "/scenario.json", "--store", options_.store};
  if (options_.device != "cpu") words.insert(words.end(), {"--device", options_.device});
  if (!backing.empty()) words.insert(words.end(), {"--backing", backing});
  if (!options_.launcher.empty()) words.insert(words.end(), {"--launcher", options_.launcher});
  if (!options_.command.empty()) {
    words.push_back("--");
    words.insert(words.end(), options_.command.begin(), options_.command.end());
  } else if (options_.subject != Options{}.subject) {
    words.insert(words.end(), {"--subject", options_.subject});
  }
  return shell_command(words);
}

Result<ScenarioResult> Session::run_one(const Job& job) {
  const std::string name = job.scenario.suite + "/" + job.scenario.name;
  progress_.begin(name);
  Result<ScenarioResult> result = run_shown(job, name);
  progress_.end(name);
  if (result && reports::did_not_pass(result->outcome)) progress_.failed();
  return result;
}

Result<ScenarioResult> Session::run_shown(const Job& job, const std::string& name) {
  const std::uint64_t start_ns = harness::monotonic_ns();
  harness::RunOptions run;
  run.store_directory = directory_.path();
  run.backing = job.backing.empty() ? options_.backing : job.backing;
  run.device = options_.device;
  run.bin = catalog_.bin;
  const bool forks = job.subject.fork_point && job.subject.launcher == "direct";
  if (forks && !job.fresh_programs) run.fork_servers = &fork_servers_;
  run.progress = [&](const harness::LifeProgress& progress) { progress_.life(name, progress); };
  SAVEGATE_TRY(const std::string folder, harness::run_scenario(job.scenario, job.subject, run));
  if (job.alter) SAVEGATE_CHECK(job.alter(folder));

  SAVEGATE_TRY(harness::Evidence evidence, harness::load_evidence(folder));
  ScenarioResult result = harness::judge(evidence);
  result.directory = folder.substr(directory_.path().size() + 1);
  result.repeat = repeat_command(folder, run.backing);
  result.seconds = seconds_since(start_ns);
  result.bound_to = harness::bound_to(evidence.provenance);
  SAVEGATE_CHECK(harness::write_file(folder + "/result.json", reports::print_json(result)));
  SAVEGATE_CHECK(write_perfetto(evidence, folder));
  const bool keep =
      options_.keep == "all" || (options_.keep == "failed" && result.outcome != Outcome::kPass);
  if (!keep) SAVEGATE_CHECK(harness::remove_trees(folder));
  return result;
}

Result<void> Session::run_jobs(
    const std::vector<Job>& jobs,
    const std::function<void(std::size_t, const ScenarioResult&)>& done) {
  progress_.expect(jobs.size());
  std::mutex mutex;  // guards `done`, `problem`
  std::optional<Status> problem;
  std::atomic<std::size_t> next{0};
  std::vector<std::size_t> chosen;
  const auto work = [&] {
    for (std::size_t at; (at = next++) < chosen.size() && !stopped_ && !harness::interrupted();) {
      const std::size_t i = chosen[at];
      const Scenario& scenario = jobs[i].scenario;
      if (budget_ && !budget_->fits(scenario)) {
        const std::lock_guard lock(mutex);
        done(i, budget_->not_run(scenario));
        continue;
      }
      auto result = run_one(jobs[i]);
      if (harness::interrupted()) return;  // cut short: no verdict
      const std::lock_guard lock(mutex);
      if (result) {
        done(i, *result);
        continue;
      }
      if (!problem) problem = result.error();
      stopped_ = true;
    }
  };
  const auto run_those = [&](bool alone, int workers_wanted) {
    chosen.clear();
    next = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (jobs[i].scenario.has_neighbour() == alone) chosen.push_back(i);
    if (workers_wanted == 1) return work();
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<std::size_t>(workers_wanted));
    for (int i = 0; i < workers_wanted; ++i) workers.emplace_back(work);
  };
  run_those(/*alone=*/false, jobs_of(options_));
  run_those(/*alone=*/true, 1);
  if (problem) return fail(*problem);
  return {};
}

Result<std::vector<Scenario>> Session::expand(const Scenario& scenario, const Subject& subject) {
  if (!scenario.generator) return std::vector<Scenario>{scenario};
  if (budget_ && !budget_->has_time()) {
    record_.scenarios.push_back(budget_->not_run(scenario));
    return std::vector<Scenario>{};
  }
  const Scenario clean = harness::clean_scenario(scenario);
  progress_.expect(1);
  SAVEGATE_TRY(const ScenarioResult recorded, run_one({clean, subject}));
  if (harness::interrupted()) return std::vector<Scenario>{};
  if (recorded.outcome != Outcome::kPass) {
    // Without a clean life there are no points: its own result says why.
    record_.scenarios.push_back(recorded);
    progress_.print(reports::render_scenario(recorded, false));
    return std::vector<Scenario>{};
  }
  SAVEGATE_TRY(faults::Trace trace, faults::read_trace(harness::sweep_trace(
                                        directory_.path() + "/" + recorded.directory, scenario)));
  SAVEGATE_TRY(harness::Sweep sweep, harness::make_sweep(scenario, trace));
  progress_.print(fmt::format("{}/{}: {} points known, {} to try\n", scenario.suite, scenario.name,
                              sweep.coverage.known, sweep.scenarios.size()));
  sweep.coverage.tried = 0;  // counted as they are done
  record_.coverage.push_back(sweep.coverage);
  if (sweep.scenarios.empty())
    record_.scenarios.push_back(
        harness::not_run(scenario, Outcome::kInvalid, "the sweep has no point"));
  if (budget_) budget_->order(sweep.scenarios);
  return std::move(sweep.scenarios);
}

std::string Session::subject_name(const Subject& subject) const {
  return options_.command.empty() ? subject.name
                                  : fmt::format("{}", fmt::join(options_.command, " "));
}

Result<void> Session::run(std::vector<Scenario> scenarios, const Subject& subject) {
  if (budget_) budget_->order(scenarios);
  record_.subject = subject_name(subject);
  std::vector<Job> jobs;
  const auto run_collected = [&]() -> Result<void> {
    Result<void> all = run_jobs(jobs, [&](std::size_t, const ScenarioResult& result) {
      const bool ran = result.outcome != Outcome::kSkip;
      if (is_sweep_point(result) && ran) ++record_.coverage.back().tried;
      if (!is_sweep_point(result) || reports::did_not_pass(result.outcome))
        progress_.print(reports::render_scenario(result, isatty(STDOUT_FILENO) != 0));
      else
        progress_.print_if_verbose(reports::render_scenario(result, isatty(STDOUT_FILENO) != 0));
      record(result);
    });
    jobs.clear();
    return all;
  };
  for (const Scenario& scenario : scenarios) {
    if (harness::interrupted()) break;
    if (const auto runnable = harness::check_runnable(scenario, subject, options_.device);
        !runnable) {
      const std::string& reason = runnable.error().text;
      const ScenarioResult result = harness::not_run(scenario, Outcome::kSkip, reason);
      progress_.print(reports::render_scenario(result, isatty(STDOUT_FILENO) != 0));
      progress_.print("  " + reason + "\n");
      record_.scenarios.push_back(result);
      continue;
    }
    if (scenario.generator) SAVEGATE_CHECK(run_collected());
    SAVEGATE_TRY(std::vector<Scenario> points, expand(scenario, subject));
    for (std::size_t i = 0; i < points.size(); ++i)
      jobs.push_back({.scenario = std::move(points[i]),
                      .subject = subject,
                      .fresh_programs = scenario.generator && i % kFreshPointEvery == 0});
    if (scenario.generator) SAVEGATE_CHECK(run_collected());
  }
  return run_collected();
}

Result<int> Session::finish(Gate* gate) {
  progress_.rest();
  record_.seconds = seconds_since(started_ns_);
  if (gate != nullptr) gate->weigh(record_);
  SAVEGATE_CHECK(directory_.write("result.json", reports::print_json(record_)));
  const std::string junit = reports::print_junit(record_);
  SAVEGATE_CHECK(directory_.write("junit.xml", junit));
  if (!options_.junit.empty()) SAVEGATE_CHECK(harness::write_file(options_.junit, junit));
  SAVEGATE_CHECK(directory_.publish());
  print_report(record_, directory_.path(), /*scenario_lines=*/false);
  if (budget_) fmt::print("{}", budget_->account(record_));
  int code = reports::exit_code(record_);
  if (gate != nullptr) code = gate->close(record_, code);
  SAVEGATE_CHECK(write_html(record_, directory_.path()));
  return harness::interrupted() ? static_cast<int>(kInterrupted) : code;
}

}  // namespace savegate::cli
