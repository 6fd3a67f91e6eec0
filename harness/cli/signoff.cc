// `savegate signoff`: the acceptance of a save path, run and written down.
#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/acceptance.h"
#include "harness/cli/commands.h"
#include "harness/cli/evidence_files.h"
#include "harness/cli/session.h"
#include "harness/cli/sha256.h"
#include "harness/evidence.h"
#include "harness/run/sandbox.h"
#include "reports/statistics.h"
#include "reports/terminal.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using reports::ScenarioResult;

reports::Signoff begin_sheet(const SignoffWords& words, const Options& options,
                             const harness::Scenario& scenario, std::uint64_t saves) {
  reports::Signoff sheet;
  sheet.command = fmt::format("savegate signoff --saves {} --confidence {}{}", saves,
                              words.confidence, option_words(options));
  if (options.command.empty())
    sheet.subject = options.subject.ends_with(".toml") ? fs::absolute(options.subject).string()
                                                       : options.subject;
  sheet.words = options.command;
  sheet.launcher = options.launcher;
  sheet.device = options.device;
  sheet.world = scenario.world;
  sheet.backing = options.backing.empty() ? "" : fs::absolute(options.backing).string();
  sheet.saves = saves;
  sheet.confidence = words.confidence;
  return sheet;
}

// The sheet last: it vouches for everything else.
Result<void> write_sheet(Session& session, reports::Signoff& sheet, const ScenarioResult& result) {
  const std::string& folder = session.directory().path();
  SAVEGATE_TRY(const harness::Evidence evidence,
               harness::load_evidence(folder + "/" + result.directory));
  sheet.id = session.directory().id();
  fill_sheet(evidence, result, sheet);
  SAVEGATE_CHECK(session.directory().write(kSheetFile, reports::render_html(sheet)));
  SAVEGATE_TRY(sheet.evidence, evidence_files(folder));
  const std::string json = reports::print_json(sheet);
  const std::string sealed = reports::with_seal(json, sha256(json));
  SAVEGATE_CHECK(session.directory().write(kSignoffFile, sealed));
  fmt::print("sheet: {0}/{1}\n       {0}/{2}\n       SHA-256 of {2}: {3}\n", folder, kSheetFile,
             kSignoffFile, sha256(sealed));
  for (const std::string& line : sheet.unmeasured) fmt::print("unmeasured: {}\n", line);
  return {};
}

Result<int> sign(const SignoffWords& words, const Options& options) {
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  SAVEGATE_TRY(const harness::Subject subject, catalog.subject(options));
  const std::uint64_t saves =
      words.saves.value_or(reports::rounds_to_exclude(words.failure_probability, words.confidence));
  const int world = options.world.value_or(subject.worlds.empty() ? 2 : subject.worlds.front());
  SAVEGATE_TRY(harness::Scenario scenario,
               acceptance_scenario(subject, world, saves, options.seed.value_or(1)));
  SAVEGATE_CHECK(apply_options(scenario, options));
  SAVEGATE_CHECK(check_fits(catalog, subject, {scenario}, options));
  reports::Signoff sheet = begin_sheet(words, options, scenario, saves);
  return harness::run_in_sandbox([&]() -> int {
    const auto inside = [&]() -> Result<int> {
      SAVEGATE_TRY(auto session, Session::begin(catalog, options, "signoff", sheet.command));
      harness::RunOptions here;
      here.store_directory = session->directory().path();
      SAVEGATE_TRY(sheet.files, files_to_sign(subject, here));
      std::optional<ScenarioResult> result;
      // As in the run that it is to vouch for: no rank is forked from a program started before.
      const Job job{.scenario = scenario, .subject = subject, .fresh_programs = true};
      SAVEGATE_CHECK(session->run_jobs({job}, [&](std::size_t, const ScenarioResult& done) {
        result = done;
        session->record(done);
        session->progress().print(reports::render_scenario(done, false));
      }));
      SAVEGATE_TRY(const int code, session->finish());
      if (!result) return code;
      SAVEGATE_CHECK(write_sheet(*session, sheet, *result));
      return code;
    };
    Result<int> code = inside();
    return code ? *code : report_error(code.error());
  });
}

}  // namespace

int signoff_command(const SignoffWords& words, const Options& options) {
  Result<int> code = sign(words, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
