#include "harness/cli/gate.h"

#include <fmt/format.h>
#include <time.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/cli/options.h"
#include "harness/cli/requirement_ids.h"
#include "harness/run/files.h"
#include "reports/github.h"

namespace savegate::cli {
namespace {

std::string today() {
  const time_t now = ::time(nullptr);
  tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  ::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

// Where the run is a step of GitHub Actions.
void tell_github(const reports::RunRecord& run) {
  const char* actions = std::getenv("GITHUB_ACTIONS");
  if (actions == nullptr || std::string(actions) != "true") return;
  fmt::print("{}", reports::github_annotations(run));
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (summary == nullptr) return;
  std::ofstream file(summary, std::ios::app);
  file << reports::github_summary(run) << std::flush;
  if (!file) fmt::print(stderr, "savegate: {}\n", system_error("write", summary).to_string());
}

}  // namespace

Result<Quarantines> read_quarantines(const std::string& path) {
  std::error_code error;
  if (path.empty() && !std::filesystem::exists(kQuarantineFile, error)) return Quarantines{};
  const std::string file = path.empty() ? kQuarantineFile : path;
  auto text = harness::read_file(file);
  if (!text) return fail(invalid("cannot read the quarantine", file));
  SAVEGATE_TRY(Quarantines entries, reports::parse_quarantine(*text, file));
  for (const reports::QuarantineEntry& entry : entries)
    SAVEGATE_CHECK(check_requirement_ids(entry.ids, entry.where));
  return entries;
}

Gate::Gate(const std::string& store, Quarantines quarantines)
    : quarantines_(std::move(quarantines)),
      history_(reports::HistoryFile::open(store + "/" + kHistoryFile)) {
  if (!history_) lose_history(history_.error());
}

void Gate::lose_history(const Status& status) {
  history_is_whole_ = false;
  fmt::print(stderr, "savegate: the history of the store: {}\n", status.to_string());
}

std::map<reports::About, reports::HistoryRow> Gate::latest() {
  if (!history_is_whole_) return {};
  auto latest = history_->latest();
  if (latest) return std::move(*latest);
  lose_history(latest.error());
  return {};
}

void Gate::weigh(reports::RunRecord& run) {
  for (reports::ScenarioResult& result : run.scenarios) {
    if (!history_is_whole_) break;
    const reports::HistoryRow now = reports::row_of(result, run, ::time(nullptr));
    if (now.outcome == reports::Outcome::kSkip) continue;
    const auto past = history_->recent(now.about, reports::kRowsLookedAt);
    if (past)
      result.standing = reports::standing_of(now, *past);
    else
      lose_history(past.error());
  }
  notes_ = reports::apply_quarantine(run, quarantines_, today());
}

int Gate::close(const reports::RunRecord& run, int code) {
  for (const std::string& note : notes_) fmt::print("{}\n", note);
  tell_github(run);
  if (history_is_whole_) {
    std::vector<reports::HistoryRow> rows;
    for (const reports::ScenarioResult& result : run.scenarios)
      rows.push_back(reports::row_of(result, run, ::time(nullptr)));
    if (auto added = history_->add(rows); !added) lose_history(added.error());
  }
  if (history_is_whole_) return code;
  fmt::print(stderr, "savegate: this run has no place in the history; its results are complete\n");
  return code == kPassed ? kEnvironment : code;
}

}  // namespace savegate::cli
