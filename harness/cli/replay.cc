// `savegate replay`: the scenario of a scene once more, and whether it fails in the same way.
#include <fmt/format.h>

#include "harness/cli/commands.h"
#include "harness/cli/scene.h"
#include "harness/run/sandbox.h"

namespace savegate::cli {
namespace {

using reports::Outcome;
using reports::ScenarioResult;

// The program may be found elsewhere, and the store is another one: only what else is not the same
// is worth a line.
std::vector<std::string> worth_saying(const std::vector<std::string>& lines) {
  std::vector<std::string> kept;
  for (const std::string& line : lines)
    if (!line.starts_with("executable.digest.end") && !line.starts_with("backing.directory"))
      kept.push_back(line);
  return kept;
}

std::string words(const ScenarioResult& result) {
  if (result.outcome == Outcome::kPass) return "passed";
  return fmt::format("{}", fmt::join(failures_of(result), ", "));
}

// Another failure than the scene's proves nothing of the scene's, either way.
int conclude(const ScenarioResult& before, const ScenarioResult& now) {
  if (failures_of(before) == failures_of(now) && before.outcome == now.outcome) {
    fmt::print("replay: the same as in the scene: {}\n", words(now));
    return now.outcome == Outcome::kPass   ? kPassed
           : now.outcome == Outcome::kFail ? kFailed
                                           : kNothingProven;
  }
  fmt::print("replay: not the same: {}; the scene: {}\n", words(now), words(before));
  if (now.outcome == Outcome::kPass) return kPassed;
  return before.outcome == Outcome::kPass && now.outcome == Outcome::kFail ? kFailed
                                                                           : kNothingProven;
}

Result<int> replay(const std::string& path, const Options& given) {
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  SAVEGATE_TRY(const Scene scene, load_scene(catalog, path, given));
  const Options options = options_of(scene, given);
  SAVEGATE_CHECK(check_fits(catalog, scene.subject, {scene.scenario}, options));
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      const std::string command = "savegate replay " + path;
      SAVEGATE_TRY(auto session, Session::begin(catalog, options, "replay", command));
      ScenarioResult now;
      SAVEGATE_CHECK(session->run_jobs({job_of(scene)}, [&](std::size_t, const auto& result) {
        now = result;
        now.repeat = command;
        session->record(now);
      }));
      SAVEGATE_TRY(const int code, session->finish());
      if (code == kInterrupted) return code;
      SAVEGATE_TRY(const auto provenance,
                   read_provenance(session->directory().path() + "/" + now.directory));
      for (const std::string& line : worth_saying(differences(scene.provenance, provenance)))
        fmt::print("differs: {}\n", line);
      return conclude(scene.result, now);
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int replay_command(const std::string& scene, const Options& options) {
  Result<int> code = replay(scene, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
