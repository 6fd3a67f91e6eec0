// `savegate judge`: the verdicts again, from the stored evidence alone. A new record beside the old
// one.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/cli/report.h"
#include "harness/evidence.h"
#include "harness/oracles.h"
#include "reports/result.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

// The folders of scenarios, in the order of names: one without its scenario.json is no less a part
// of the run.
std::vector<std::string> scenario_folders(const std::string& directory) {
  std::vector<std::string> found;
  if (fs::exists(directory + "/scenario.json")) return {directory};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (fs::exists(entry.path() / "scenario.json") || fs::exists(entry.path() / "life-1"))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

// judgement-1.json, -2 … : the first name that is free.
std::string free_name(const std::string& directory) {
  for (int number = 1;; ++number) {
    std::string path = fmt::format("{}/judgement-{}.json", directory, number);
    if (!fs::exists(path)) return path;
  }
}

reports::ScenarioResult unreadable(const std::string& folder, const Status& error) {
  reports::ScenarioResult result;
  result.scenario = fs::path(folder).filename().string();
  result.outcome = reports::Outcome::kInvalid;
  result.verdicts.push_back({.requirement = "H1",
                             .outcome = reports::Outcome::kInvalid,
                             .summary = "the evidence cannot be read: " + error.to_string(),
                             .evidence = {}});
  return result;
}

Result<int> judge_run(const std::string& run_directory) {
  std::error_code error;
  const fs::path resolved = fs::canonical(run_directory, error);
  if (error) return fail(invalid("there is no run here", run_directory));
  const std::vector<std::string> folders = scenario_folders(resolved.string());
  if (folders.empty())
    return fail(invalid("no scenario's evidence in this folder; name a run such as store/latest",
                        run_directory));

  reports::RunRecord record;
  record.id = resolved.filename().string();
  record.command = "savegate judge " + run_directory;
  for (const std::string& folder : folders) {
    const auto evidence = harness::load_evidence(folder);
    reports::ScenarioResult result =
        evidence ? harness::judge(*evidence) : unreadable(folder, evidence.error());
    result.directory = fs::relative(folder, resolved, error).string();
    result.repeat = "savegate judge " + folder;
    record.scenarios.push_back(std::move(result));
  }
  const std::string path = free_name(resolved.string());
  std::ofstream file(path);
  file << reports::print_json(record);
  file.close();
  if (!file) return fail(system_error("write", path));
  print_report(record, resolved.string(), /*scenario_lines=*/true);
  fmt::print("{}\n", path);
  return reports::exit_code(record);
}

}  // namespace

int judge_command(const std::string& run_directory) {
  auto judged = judge_run(run_directory);
  return judged ? *judged : report_error(judged.error());
}

}  // namespace savegate::cli
