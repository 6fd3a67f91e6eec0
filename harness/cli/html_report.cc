// `savegate report`, and what `savegate run` writes for people to look at.
#include "harness/cli/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/cli/commands.h"
#include "harness/cli/gate.h"
#include "harness/oracles.h"
#include "harness/oracles/scene.h"
#include "harness/run/files.h"
#include "reports/html.h"
#include "reports/perfetto.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kScenes = 60;  // of failures: more than a page has room for
constexpr std::size_t kFilesLinked = 60;

std::vector<std::string> evidence_files(const std::string& run_directory,
                                        const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  const fs::path root = fs::path(run_directory) / folder;
  fs::recursive_directory_iterator entry(root, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == "work" || name == "scene")
      entry.disable_recursion_pending();
    else if (entry->is_regular_file(error))
      files.push_back(entry->path().lexically_relative(run_directory).generic_string());
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kFilesLinked) files.resize(kFilesLinked);
  return files;
}

// Evidence that cannot be read any more has no picture; the report says so there.
void add_scene(reports::HtmlInput& input, const std::string& run_directory,
               const std::string& folder) {
  if (folder.empty() || input.scenes.contains(folder)) return;
  const auto evidence = harness::load_evidence(run_directory + "/" + folder);
  if (!evidence) return;
  input.scenes[folder] = {harness::scene_of(*evidence), evidence_files(run_directory, folder)};
}

// Of runs before this one: a report that is made again later says the same.
void add_history(reports::HtmlInput& input, const reports::RunRecord& record,
                 const std::string& run_directory) {
  const std::string path = fs::path(run_directory).parent_path().string() + "/" + kHistoryFile;
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const auto history = reports::HistoryFile::open(path);
  if (!history) return;  // the gate has said why
  for (const reports::ScenarioResult& result : record.scenarios) {
    if (!reports::did_not_pass(result.outcome)) continue;
    auto rows = history->recent(reports::row_of(result, record, 0).about, reports::kRowsLookedAt);
    if (!rows) continue;
    std::erase_if(*rows, [&](const reports::HistoryRow& row) { return row.run >= record.id; });
    input.history[reports::lasting_name(result)] = std::move(*rows);
  }
}

Result<std::string> report(const std::string& run_directory) {
  std::error_code error;
  const fs::path resolved = fs::canonical(run_directory, error);
  if (error) return fail(invalid("there is no run here", run_directory));
  auto text = harness::read_file((resolved / "result.json").string());
  if (!text)
    return fail(invalid("no result.json here; name a run such as store/latest", run_directory));
  SAVEGATE_TRY(const reports::RunRecord record, reports::run_record_from_json(*text));
  SAVEGATE_CHECK(write_html(record, resolved.string()));
  return (resolved / "report.html").string();
}

}  // namespace

Result<void> write_perfetto(const harness::Evidence& evidence, const std::string& folder) {
  return harness::replace_file(folder + "/trace.perfetto.json",
                               reports::print_perfetto(harness::scene_of(evidence)));
}

Result<void> write_html(const reports::RunRecord& record, const std::string& run_directory) {
  reports::HtmlInput input;
  for (const harness::Oracle& oracle : harness::all_oracles())
    input.rules[std::string(oracle.requirement)] = oracle.rule;
  for (const reports::ScenarioResult& result : record.scenarios) {
    const bool first = input.measured.empty() && !result.lives.empty();
    if (!first && (!reports::did_not_pass(result.outcome) || input.scenes.size() >= kScenes))
      continue;
    add_scene(input, run_directory, result.directory);
    if (first && input.scenes.contains(result.directory)) input.measured = result.directory;
  }
  add_history(input, record, run_directory);
  return harness::replace_file(run_directory + "/report.html", reports::render_html(record, input));
}

int report_command(const std::string& run_directory) {
  auto written = report(run_directory);
  if (!written) return report_error(written.error());
  fmt::print("{}\n", *written);
  return kPassed;
}

}  // namespace savegate::cli
