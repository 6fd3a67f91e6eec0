// A session: scenarios run and judged, all in one run of the store.
//
//   SAVEGATE_TRY(Session session, Session::begin(catalog, options, "smoke", command_line));
//   SAVEGATE_CHECK(session.run(scenarios, subject));
//   return session.finish();           // result.json, junit.xml and the report; the exit code
//
// Runs inside the sandbox. A scenario with a generator becomes one result for each of its points.
// --jobs of them run at the same time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/cli/budget.h"
#include "harness/cli/catalog.h"
#include "harness/cli/options.h"
#include "harness/cli/progress.h"
#include "harness/run/fork_server.h"
#include "harness/run/store.h"
#include "harness/scenario.h"
#include "harness/subject.h"
#include "reports/result.h"

namespace savegate::cli {

class Gate;

// One scenario on one subject. `alter` may change the evidence between collecting and judging.
struct Job {
  harness::Scenario scenario;
  harness::Subject subject;
  std::string backing = {};  // "": that of the options
  std::function<Result<void>(const std::string& scenario_directory)> alter = {};
  bool fresh_programs = false;  // even where the subject has a fork point
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> begin(const Catalog& catalog, const Options& options,
                                                const std::string& name,
                                                const std::string& command_line);

  // From now on: in the budget's order, and no further than it.
  void within(Budget budget) { budget_ = std::move(budget); }

  // All of them, sweeps expanded; ends early, without an error, where the user interrupts.
  Result<void> run(std::vector<harness::Scenario> scenarios, const harness::Subject& subject);

  // --jobs at a time, those with a neighbour on a device one by one after the others; `done` is
  // called for each as it ends, one at a time, with its place in `jobs`.
  Result<void> run_jobs(
      const std::vector<Job>& jobs,
      const std::function<void(std::size_t, const reports::ScenarioResult&)>& done);

  // Of run_jobs: into what finish() writes.
  void record(const reports::ScenarioResult& result) { record_.scenarios.push_back(result); }
  void cover(reports::Coverage coverage) { record_.coverage.push_back(std::move(coverage)); }
  // Of run_jobs: no job begins any more.
  void stop() { stopped_ = true; }

  // Writes result.json and junit.xml, moves store/latest, prints the report. The exit code. With a
  // gate, the results are weighed before and remembered after.
  Result<int> finish(Gate* gate = nullptr);

  // How results are named in the history.
  std::string subject_name(const harness::Subject& subject) const;

  Progress& progress() { return progress_; }
  const harness::RunDirectory& directory() const { return directory_; }

 private:
  Session(Catalog catalog, Options options, harness::RunDirectory directory,
          std::string command_line);
  Result<reports::ScenarioResult> run_one(const Job& job);
  Result<reports::ScenarioResult> run_shown(const Job& job, const std::string& name);
  Result<std::vector<harness::Scenario>> expand(const harness::Scenario& scenario,
                                                const harness::Subject& subject);
  std::string repeat_command(const std::string& folder, const std::string& backing) const;

  Catalog catalog_;
  Options options_;
  harness::RunDirectory directory_;
  harness::ForkServers fork_servers_;
  Progress progress_;
  reports::RunRecord record_;
  std::uint64_t started_ns_;
  std::atomic<bool> stopped_ = false;
  std::optional<Budget> budget_;
};

}  // namespace savegate::cli
