// A scene: what one scenario's folder of the store holds, enough to run it again alone.
//
// The folder may have been copied to another machine. What it cannot hold is the program: its
// folder is looked for where it was, then among the subjects that come with savegate.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/cli/catalog.h"
#include "harness/cli/session.h"

namespace savegate::cli {

struct Scene {
  std::string folder;  // absolute
  harness::Scenario scenario;
  harness::Subject subject;
  std::map<std::string, std::string> provenance;
  reports::ScenarioResult result;
};

// `path` is a scenario's folder, or a run in which exactly one scenario did not pass. A subject or
// command among the options takes the place of the scene's own.
Result<Scene> load_scene(const Catalog& catalog, const std::string& path, const Options& options);

Result<std::map<std::string, std::string>> read_provenance(const std::string& scenario_folder);

// Sets what the scene says of a run: its device and launcher.
Options options_of(const Scene& scene, Options options);
Job job_of(const Scene& scene);

// "FAIL C1", one a verdict that did not pass, in the order of names.
std::vector<std::string> failures_of(const reports::ScenarioResult& result);

// "kernel: 6.1, was 6.0", one a name whose value is not the same.
std::vector<std::string> differences(const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& now);

}  // namespace savegate::cli
