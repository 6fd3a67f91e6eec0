#include "reports/quarantine.h"

#include <fmt/format.h>

#include <algorithm>

#include "faults/toml.h"

namespace savegate::reports {
namespace {

bool names(const QuarantineEntry& entry, const ScenarioResult& result, const RunRecord& run) {
  return (entry.subject.empty() || entry.subject == run.subject) &&
         entry.scenario.matches(group_name(result));
}

bool covers(const QuarantineEntry& entry, const std::string& id) {
  return entry.ids.empty() || std::find(entry.ids.begin(), entry.ids.end(), id) != entry.ids.end();
}

// The entry that excuses the id the longest; null where none does.
const QuarantineEntry* longest(const std::vector<const QuarantineEntry*>& entries,
                               const std::string& id) {
  const QuarantineEntry* best = nullptr;
  for (const QuarantineEntry* entry : entries)
    if (covers(*entry, id) && (best == nullptr || best->terms.until < entry->terms.until))
      best = entry;
  return best;
}

// Of all ids that failed, the terms that end first; nothing where an id is not excused.
std::optional<Quarantine> terms_of(const ScenarioResult& result,
                                   const std::vector<const QuarantineEntry*>& entries) {
  std::optional<Quarantine> terms;
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.outcome != result.outcome) continue;
    const QuarantineEntry* entry = longest(entries, verdict.requirement);
    if (entry == nullptr) return std::nullopt;
    if (!terms || entry->terms.until < terms->until) terms = entry->terms;
  }
  return terms;
}

}  // namespace

Result<std::vector<QuarantineEntry>> parse_quarantine(std::string_view toml,
                                                      std::string_view source_name) {
  SAVEGATE_TRY(faults::TomlDocument document, faults::parse_toml(toml, source_name));
  faults::TomlReader root = document.root();
  std::vector<QuarantineEntry> entries;
  for (faults::TomlReader& table : root.tables("quarantine")) {
    QuarantineEntry entry{.scenario = faults::Glob(table.required_string("scenario")),
                          .subject = table.string("subject"),
                          .ids = table.strings("ids"),
                          .terms = {},
                          .where = table.where()};
    entry.terms.until = table.required_date("until");
    entry.terms.reason = table.required_string("reason");
    entry.terms.issue = table.string("issue");
    if (table.has("reason") && entry.terms.reason.empty())
      table.error_at("reason", "a quarantine says why");
    entries.push_back(std::move(entry));
  }
  SAVEGATE_CHECK(root.finish());
  return entries;
}

std::vector<std::string> apply_quarantine(RunRecord& run,
                                          const std::vector<QuarantineEntry>& entries,
                                          std::string_view today) {
  std::vector<bool> named(entries.size());
  std::vector<bool> needed(entries.size());
  for (ScenarioResult& result : run.scenarios) {
    std::vector<const QuarantineEntry*> naming;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!names(entries[i], result, run)) continue;
      named[i] = true;
      needed[i] = needed[i] || did_not_pass(result.outcome);
      naming.push_back(&entries[i]);
    }
    if (!did_not_pass(result.outcome)) continue;
    std::optional<Quarantine> terms = terms_of(result, naming);
    if (!terms) continue;
    terms->expired = terms->until < today;
    if (!result.standing) result.standing.emplace();
    result.standing->quarantine = std::move(terms);
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (needed[i]) continue;
    lines.push_back(fmt::format(
        "{}: the quarantine of `{}` {}", entries[i].where, entries[i].scenario.pattern(),
        named[i] ? "names nothing that failed in this run" : "names nothing that was run"));
  }
  return lines;
}

}  // namespace savegate::reports
