#include "harness/cli/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "faults/toml.h"
#include "harness/cli/gpus.h"
#include "harness/cli/requirement_ids.h"
#include "harness/run/files.h"
#include "harness/run/python.h"
#include "harness/run/runnable.h"
#include "harness/time_limit.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using harness::Scenario;
using harness::Suite;

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<Scenario>> named_scenarios(const Catalog& catalog, const std::string& name) {
  if (name.ends_with(".json")) {
    auto text = harness::read_file(name);
    if (!text) return fail(invalid("cannot read the stored scenario", name));
    auto scenario = harness::scenario_from_json(*text);
    if (!scenario) return fail(invalid(scenario.error().text, name));
    return std::vector<Scenario>{std::move(*scenario)};
  }
  const std::vector<std::string> suites = catalog.suite_names();
  if (name.ends_with(".toml") || std::find(suites.begin(), suites.end(), name) != suites.end()) {
    SAVEGATE_TRY(Suite suite, catalog.suite(name));
    return std::move(suite.scenarios);
  }

  // "my-suite.toml/scenario".
  constexpr std::string_view kInFile = ".toml/";
  if (const auto at = name.rfind(kInFile); at != std::string::npos) {
    const std::string wanted = name.substr(at + kInFile.size());
    SAVEGATE_TRY(Suite suite, catalog.suite(name.substr(0, at + kInFile.size() - 1)));
    std::vector<std::string> there;
    for (Scenario& scenario : suite.scenarios) {
      if (scenario.name == wanted) return std::vector<Scenario>{std::move(scenario)};
      there.push_back(scenario.name);
    }
    return fail(
        invalid("no scenario `" + wanted + "` in the suite" + faults::did_you_mean(wanted, there),
                suite.name));
  }

  // "suite/scenario", or a scenario's name alone where only one suite has it.
  std::vector<Scenario> found;
  std::vector<std::string> known = suites;
  for (const std::string& suite_name : suites) {
    SAVEGATE_TRY(Suite suite, catalog.suite(suite_name));
    for (Scenario& scenario : suite.scenarios) {
      if (scenario.suite != suite.name) continue;  // included: met in its own suite
      const std::string full = suite.name + "/" + scenario.name;
      known.push_back(full);
      if (full == name || scenario.name == name) found.push_back(std::move(scenario));
    }
  }
  if (found.size() == 1) return found;
  if (found.empty())
    return fail(invalid("no suite or scenario `" + name + "`" + faults::did_you_mean(name, known) +
                        "; `savegate list` shows all"));
  return fail(invalid("`" + name + "` is the name of several scenarios; say " + found[0].suite +
                      "/" + name + " or " + found[1].suite + "/" + name));
}

}  // namespace

Result<Catalog> find_catalog() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return fail(system_error("readlink", "/proc/self/exe", error.value()));
  const fs::path bin = program.parent_path();
  // Installed: PREFIX/bin and PREFIX/share/savegate. Built: SOURCE/build*/bin and SOURCE/scenarios.
  for (const fs::path& data : {bin / "../share/savegate/scenarios", bin / "../../scenarios"}) {
    if (fs::is_directory(data / "suites"))
      return Catalog{bin.string(), fs::weakly_canonical(data).string()};
  }
  return fail(
      unavailable("the suites are neither in ../share/savegate/scenarios nor in "
                  "../../scenarios beside the program; keep the program in its folder",
                  program.string()));
}

std::vector<std::string> Catalog::suite_names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data + "/suites"))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  return sorted(std::move(names));
}

std::vector<std::string> Catalog::subject_names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data + "/subjects"))
    if (fs::exists(entry.path() / "subject.toml"))
      names.push_back(entry.path().filename().string());
  return sorted(std::move(names));
}

Result<Suite> Catalog::suite(const std::string& name_or_path) const {
  const std::string path =
      name_or_path.ends_with(".toml") ? name_or_path : data + "/suites/" + name_or_path + ".toml";
  SAVEGATE_TRY(Suite found, harness::load_suite(path));
  for (const Scenario& scenario : found.scenarios)
    SAVEGATE_CHECK(check_requirement_ids(scenario.requirements, scenario.source));
  return found;
}

Result<harness::Subject> Catalog::subject(const Options& options) const {
  SAVEGATE_TRY(harness::Subject subject, own_subject(options));
  if (!options.launcher.empty()) subject.launcher = options.launcher;
  return subject;
}

Result<harness::Subject> Catalog::own_subject(const Options& options) const {
  if (!options.command.empty()) return harness::bare_subject(options.command);
  if (options.subject.ends_with(".toml")) return harness::load_subject(options.subject);
  const std::vector<std::string> names = subject_names();
  if (std::find(names.begin(), names.end(), options.subject) == names.end())
    return fail(invalid("no subject `" + options.subject + "`" +
                        faults::did_you_mean(options.subject, names)));
  return harness::load_subject(data + "/subjects/" + options.subject + "/subject.toml");
}

Result<void> apply_options(Scenario& scenario, const Options& options) {
  std::optional<std::uint64_t> timeout;
  if (!options.timeout.empty()) {
    auto limit = harness::parse_time_limit(options.timeout);
    if (!limit) return fail(invalid("--timeout: " + limit.error().text));
    timeout = *limit;
  }
  if (options.world) scenario.world = *options.world;
  if (options.seed) {
    scenario.seed = *options.seed;
    for (harness::LifeSpec& life : scenario.lives) life.plan.seed = *options.seed;
  }
  if (timeout)
    for (harness::LifeSpec& life : scenario.lives) life.no_progress_ns = *timeout;
  return {};
}

Result<std::vector<Scenario>> select_scenarios(const Catalog& catalog,
                                               const std::vector<std::string>& names,
                                               const Options& options) {
  std::vector<Scenario> selected;
  for (const std::string& name : names) {
    SAVEGATE_TRY(std::vector<Scenario> scenarios, named_scenarios(catalog, name));
    for (Scenario& scenario : scenarios) {
      SAVEGATE_CHECK(apply_options(scenario, options));
      selected.push_back(std::move(scenario));
    }
  }
  return selected;
}

Result<Scenario> select_one_scenario(const Catalog& catalog, const std::string& name,
                                     const harness::Subject& subject, const Options& options) {
  SAVEGATE_TRY(std::vector<Scenario> scenarios, select_scenarios(catalog, {name}, options));
  if (scenarios.size() != 1)
    return fail(invalid(fmt::format("{} holds {} scenarios: name one of them, as {}/NAME", name,
                                    scenarios.size(), name)));
  Scenario scenario = std::move(scenarios.front());
  if (scenario.generator)
    return fail(invalid(fmt::format(
        "{} is a sweep: repeat one of its points, by the scenario.json in its folder of the store",
        name)));
  if (const auto runnable = harness::check_runnable(scenario, subject, options.device); !runnable) {
    Status reason = runnable.error();
    reason.text = fmt::format("{}: {}", name, reason.text);
    return fail(std::move(reason));
  }
  return scenario;
}

Result<void> check_fits(const Catalog& catalog, const harness::Subject& subject,
                        const std::vector<Scenario>& scenarios, const Options& options) {
  SAVEGATE_CHECK(
      harness::check_python_packages(harness::python_program(catalog.bin), subject.needs_python));
  const auto& devices = subject.devices;
  if (std::find(devices.begin(), devices.end(), options.device) == devices.end())
    return fail(invalid(fmt::format("the subject `{}` does not run on {}; it runs on {}",
                                    subject.name, options.device, fmt::join(devices, ", "))));
  if (options.device == "cuda") {
    if (auto found = count_gpus(); !found) return fail(found.error());
  }
  const auto& worlds = subject.worlds;
  for (const Scenario& scenario : scenarios)
    if (!worlds.empty() && std::find(worlds.begin(), worlds.end(), scenario.world) == worlds.end())
      return fail(invalid(fmt::format(
          "the subject `{}` does not run with {} ranks, as {}/{} asks; it runs with {}: say "
          "--world",
          subject.name, scenario.world, scenario.suite, scenario.name, fmt::join(worlds, ", "))));
  return {};
}

}  // namespace savegate::cli
