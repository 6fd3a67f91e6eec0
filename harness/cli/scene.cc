#include "harness/cli/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/run/files.h"
#include "harness/run/provenance.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNotObtained = "not obtained";

Result<std::string> read_of_scene(const std::string& folder, const std::string& name) {
  auto text = harness::read_file(folder + "/" + name);
  if (!text) return fail(invalid("the scene is not whole: " + name + " cannot be read", folder));
  return text;
}

Result<std::string> one_failure_of(const std::string& run) {
  SAVEGATE_TRY(const std::string text, read_of_scene(run, "result.json"));
  SAVEGATE_TRY(const reports::RunRecord record, reports::run_record_from_json(text));
  std::vector<std::string> folders;
  for (const reports::ScenarioResult& result : record.scenarios)
    if (reports::did_not_pass(result.outcome)) folders.push_back(run + "/" + result.directory);
  if (folders.size() == 1) return folders.front();
  if (folders.empty())
    return fail(invalid("every scenario of this run passed; name the folder of one", run));
  return fail(invalid(fmt::format("{} scenarios of this run did not pass; name one: {}",
                                  folders.size(), fmt::join(folders, ", ")),
                      run));
}

// What is needed to run it again.
Result<void> check_provenance(const Scene& scene) {
  for (const char* needed : {"device", "launcher", "subject.directory"})
    if (!scene.provenance.contains(needed))
      return fail(invalid(fmt::format("provenance.json does not say the {}: an older savegate "
                                      "wrote it; run the scenario.json instead",
                                      needed),
                          scene.folder));
  return {};
}

Result<harness::Subject> subject_of(const Catalog& catalog, const Scene& scene) {
  SAVEGATE_TRY(harness::Subject subject, harness::load_subject(scene.folder + "/subject.toml"));
  subject.launcher = scene.provenance.at("launcher");
  subject.directory = "";
  const std::string& recorded = scene.provenance.at("subject.directory");
  if (recorded == kNotObtained) return subject;
  for (const std::string& directory : {recorded, catalog.data + "/subjects/" + subject.name}) {
    if (!fs::is_directory(directory)) continue;
    subject.directory = directory;
    return subject;
  }
  return fail(unavailable(fmt::format("the folder of the subject `{}` is not on this machine; "
                                      "say where its subject.toml is with --subject",
                                      subject.name),
                          recorded));
}

}  // namespace

Result<std::map<std::string, std::string>> read_provenance(const std::string& folder) {
  SAVEGATE_TRY(const std::string text, read_of_scene(folder, "provenance.json"));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(invalid("provenance.json is no JSON object", folder));
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : json.items())
    if (value.is_string()) values.emplace(name, value.get<std::string>());
  return values;
}

Result<Scene> load_scene(const Catalog& catalog, const std::string& path, const Options& options) {
  std::error_code error;
  Scene scene;
  scene.folder = fs::canonical(path, error).string();
  if (error) return fail(invalid("there is no scene here", path));
  if (!fs::exists(scene.folder + "/scenario.json")) {
    SAVEGATE_TRY(scene.folder, one_failure_of(scene.folder));
  }
  SAVEGATE_TRY(const std::string scenario, read_of_scene(scene.folder, "scenario.json"));
  SAVEGATE_TRY(scene.scenario, harness::scenario_from_json(scenario));
  SAVEGATE_TRY(const std::string result, read_of_scene(scene.folder, "result.json"));
  SAVEGATE_TRY(scene.result, reports::scenario_result_from_json(result));
  SAVEGATE_TRY(scene.provenance, read_provenance(scene.folder));
  SAVEGATE_CHECK(check_provenance(scene));
  if (!options.command.empty() || !options.subject.empty()) {
    SAVEGATE_TRY(scene.subject, catalog.subject(options));
    scene.subject.launcher = scene.provenance.at("launcher");
  } else {
    SAVEGATE_TRY(scene.subject, subject_of(catalog, scene));
  }
  return scene;
}

Options options_of(const Scene& scene, Options options) {
  options.device = scene.provenance.at("device");
  options.launcher = scene.subject.launcher;
  return options;
}

Job job_of(const Scene& scene) {
  const auto processes = scene.provenance.find("processes");
  return {.scenario = scene.scenario,
          .subject = scene.subject,
          .fresh_programs =
              processes != scene.provenance.end() && processes->second == harness::kFreshPrograms};
}

std::vector<std::string> failures_of(const reports::ScenarioResult& result) {
  std::vector<std::string> failures;
  for (const reports::Verdict& verdict : result.verdicts)
    if (reports::did_not_pass(verdict.outcome))
      failures.push_back(
          fmt::format("{} {}", reports::outcome_name(verdict.outcome), verdict.requirement));
  std::sort(failures.begin(), failures.end());
  failures.erase(std::unique(failures.begin(), failures.end()), failures.end());
  return failures;
}

std::vector<std::string> differences(const std::map<std::string, std::string>& before,
                                     const std::map<std::string, std::string>& now) {
  std::vector<std::string> lines;
  const auto value_of = [](const std::map<std::string, std::string>& values,
                           const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string(kNotObtained) : found->second;
  };
  std::map<std::string, std::string> names = before;
  names.insert(now.begin(), now.end());
  for (const auto& [name, value] : names) {
    const std::string was = value_of(before, name);
    const std::string is = value_of(now, name);
    if (was != is) lines.push_back(fmt::format("{}: {}, was {}", name, is, was));
  }
  return lines;
}

}  // namespace savegate::cli
