// `savegate signoff --check` and `--compare`: whether the evidence is as it was signed, and whether
// what is to run is what was.
#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "harness/cli/commands.h"
#include "harness/cli/evidence_files.h"
#include "harness/cli/scene.h"
#include "harness/cli/sha256.h"
#include "harness/run/files.h"
#include "harness/run/provenance.h"
#include "harness/run/sandbox.h"
#include "harness/run/scenario_runner.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, reports::SignedFile>;

// Of one run alone: what they say is said by other names, or is no part of what was signed.
constexpr std::string_view kOfOneRun[] = {"executable.digest.end", "scenario.digest", "plan.digest",
                                          "seed", "processes"};

Result<std::string> read_signoff(const std::string& file) {
  auto text = harness::read_file(file);
  if (!text) return fail(invalid("cannot read the sign-off", file));
  return text;
}

std::string folder_of(const std::string& file) { return fs::absolute(file).parent_path().string(); }

int conclude(const std::vector<std::string>& lines, const std::string& as_signed) {
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (lines.empty()) fmt::print("{}\n", as_signed);
  return lines.empty() ? kPassed : kFailed;
}

Result<int> check(const std::string& file) {
  SAVEGATE_TRY(const std::string text, read_signoff(file));
  SAVEGATE_TRY(const auto seal, reports::split_seal(text, file));
  SAVEGATE_TRY(const reports::Signoff sheet, reports::signoff_from_json(text, file));
  SAVEGATE_TRY(const Files present, evidence_files(folder_of(file)));
  std::vector<std::string> lines = differing_files(sheet.evidence, present);
  if (sha256(seal.second) != seal.first)
    lines.push_back(fmt::format("altered: {}: it does not fit its own seal", kSignoffFile));
  return conclude(lines, fmt::format("{} evidence files as signed; outcome {}",
                                     sheet.evidence.size(), outcome_name(sheet.outcome)));
}

Options with_signed(const reports::Signoff& sheet, const ComparedWords& words, Options options) {
  if (!words.subject && options.command.empty()) {
    options.subject = sheet.subject;
    options.command = sheet.words;
    if (options.launcher.empty()) options.launcher = sheet.launcher;
  }
  if (!words.device) options.device = sheet.device;
  if (!options.world) options.world = sheet.world;
  if (options.backing.empty()) options.backing = sheet.backing;
  return options;
}

std::map<std::string, std::string> comparable(std::map<std::string, std::string> values) {
  for (const std::string_view name : kOfOneRun) values.erase(std::string(name));
  return values;
}

Result<int> compare(const ComparedWords& words, const Options& given) {
  SAVEGATE_TRY(const std::string text, read_signoff(words.file));
  SAVEGATE_TRY(const reports::Signoff sheet, reports::signoff_from_json(text, words.file));
  const Options options = with_signed(sheet, words, given);
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  SAVEGATE_TRY(const harness::Subject subject, catalog.subject(options));
  harness::Scenario scenario;
  scenario.world = *options.world;
  harness::RunOptions run;
  run.backing = options.backing;
  run.device = options.device;
  run.bin = catalog.bin;
  run.store_directory = folder_of(words.file);
  SAVEGATE_TRY(const Files files, files_to_sign(subject, run));
  // Its mounts are those of the run's.
  return harness::run_in_sandbox([&]() -> int {
    const std::string backing = run.backing.empty() ? folder_of(words.file) : run.backing;
    const harness::Provenance now(scenario, subject, run, backing);
    std::vector<std::string> lines =
        differences(comparable(sheet.provenance), comparable(now.values()));
    // An older sheet names none: the provenance has one digest over them all.
    if (!sheet.files.empty())
      for (const std::string& line : differing_files(sheet.files, files))
        lines.push_back("file " + line);
    return conclude(lines, fmt::format("what was signed is what would run now; outcome {}",
                                       outcome_name(sheet.outcome)));
  });
}

}  // namespace

Result<Files> evidence_files(const std::string& folder) {
  Files files;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(folder).generic_string();
    const bool is_tree = entry.depth() == 1 && entry->path().filename() == "work";
    if (is_tree) entry.disable_recursion_pending();
    if (is_tree || path == kSignoffFile || !entry->is_regular_file()) continue;
    SAVEGATE_TRY(files[path], sha256_of_file(entry->path().string()));
  }
  if (error) return fail(system_error("list", folder, error.value()));
  return files;
}

Result<Files> files_to_sign(const harness::Subject& subject, const harness::RunOptions& options) {
  Files files;
  if (subject.directory.empty()) return files;
  SAVEGATE_TRY(const auto paths, harness::files_of_subject(subject, options));
  for (const std::string& path : paths) {
    SAVEGATE_TRY(files[path], sha256_of_file(subject.directory + "/" + path));
  }
  return files;
}

std::vector<std::string> differing_files(const Files& signed_files, const Files& present) {
  std::vector<std::string> lines;
  for (const auto& [path, file] : signed_files) {
    const auto found = present.find(path);
    if (found == present.end())
      lines.push_back("missing: " + path);
    else if (found->second != file)
      lines.push_back("altered: " + path);
  }
  for (const auto& [path, file] : present)
    if (!signed_files.contains(path)) lines.push_back("added: " + path);
  return lines;
}

int signoff_check_command(const std::string& file) {
  Result<int> code = check(file);
  return code ? *code : report_error(code.error());
}

int signoff_compare_command(const ComparedWords& words, const Options& options) {
  Result<int> code = compare(words, options);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
