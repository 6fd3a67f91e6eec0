// Runs a scenario: every life on a fresh mount in new processes, and leaves its evidence in the
// store.
//
//   RunOptions options{.store_directory = run.path(), .bin = "build/bin"};
//   SAVEGATE_TRY(std::string folder, run_scenario(scenario, subject, options));
//   SAVEGATE_TRY(Evidence evidence, load_evidence(folder));
//   ScenarioResult result = judge(evidence);
//   if (result.outcome == Outcome::kPass) SAVEGATE_CHECK(remove_trees(folder));
//
// Call it inside run_in_sandbox(). Scenarios may run side by side in threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/run/supervisor.h"
#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::harness {

class ForkServers;

struct RunOptions {
  std::string store_directory;  // of the run; the scenario's folder is made below it
  std::string backing;          // folder for checkpoint trees; "": in the scenario's folder
  std::string device = "cpu";
  std::string bin;                              // folder of savegate-fs; {bin} in commands
  std::vector<std::string> command;             // in place of the subject's, if not empty
  std::optional<std::uint64_t> no_progress_ns;  // in place of the lives'
  std::function<void(const LifeProgress&)> progress;
  ForkServers* fork_servers = nullptr;  // where the subject has a fork point; null: fresh programs
};

// The scenario's folder, with evidence and manifest. A life that goes wrong is evidence too; an
// error means that nothing can be judged: a program is missing, the daemon cannot mount, a disk is
// full. After an interrupt (interrupt.h) the folder holds what was collected.
Result<std::string> run_scenario(const Scenario& scenario, const Subject& subject,
                                 const RunOptions& options);

// Removes the checkpoint tree that the lives left in the scenario's folder as `work`; not called,
// it is kept.
Result<void> remove_trees(const std::string& scenario_folder);

}  // namespace savegate::harness
