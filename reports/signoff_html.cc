#include <fmt/format.h>

#include "reports/html_text.h"
#include "reports/signoff.h"

namespace savegate::reports {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<style>
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:70rem;margin:auto;padding:1rem}
table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #8888;padding:.25rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
.scroll{overflow-x:auto}.n{text-align:right;font-variant-numeric:tabular-nums}
.outcome{font-weight:700;white-space:nowrap}code{font-size:.85rem}
@media print{body{max-width:none}}
</style>
)";

std::string number(const Measurement& value, int digits = 3) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "not obtained";
}

std::string mebibytes(const Measurement& bytes) {
  return bytes ? fmt::format("{:.3f}", *bytes / 1048576.0) : "not obtained";
}

std::string rate(const Measurement& bytes, double seconds) {
  return bytes && seconds > 0 ? fmt::format("{:.1f}", *bytes / 1048576.0 / seconds)
                              : "not obtained";
}

std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string line = "<tr>";
  for (const std::string& cell : cells) line += fmt::format("<{0}>{1}</{0}>", tag, cell);
  return line + "</tr>\n";
}

std::string table(const std::string& caption, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<h2>" + caption + "</h2>\n";
  if (rows.empty()) return text + "<p>not obtained</p>\n";
  text += "<div class=\"scroll\"><table>" + row(head, "th");
  for (const auto& cells : rows) text += row(cells);
  return text + "</table></div>\n";
}

std::string requirements(const Signoff& signoff) {
  std::vector<std::vector<std::string>> rows;
  for (const SignedRequirement& one : signoff.requirements) {
    std::string seen = html(one.summary);
    for (const std::string& line : one.evidence) seen += "<br><code>" + html(line) + "</code>";
    rows.push_back({html(one.id), "<span class=\"outcome\">" + html(one.outcome) + "</span>",
                    html(one.rule), seen,
                    one.evidence_file.empty()
                        ? ""
                        : fmt::format("<a href=\"{0}\">{0}</a>", html(one.evidence_file))});
  }
  return table("Requirements", {"id", "outcome", "what must hold", "seen", "evidence"}, rows);
}

std::string times(const Signoff& signoff) {
  std::vector<std::vector<std::string>> saves;
  for (const SaveRow& one : signoff.save_rows)
    saves.push_back(
        {std::to_string(one.life), std::to_string(one.save), std::to_string(one.rank),
         mebibytes(one.bytes), number(one.call_seconds), number(one.durable_seconds),
         rate(one.bytes, one.call_seconds.value_or(0) + one.durable_seconds.value_or(0))});
  std::vector<std::vector<std::string>> restores;
  for (const RestoreRow& one : signoff.restore_rows)
    restores.push_back({std::to_string(one.life), std::to_string(one.rank), mebibytes(one.bytes),
                        number(one.start_seconds), number(one.restore_seconds),
                        rate(one.bytes, one.restore_seconds.value_or(0))});
  return table(
             "Saves",
             {"life", "save", "rank", "MiB of state", "s in the call", "s until durable", "MiB/s"},
             saves) +
         table("Restores", {"life", "rank", "MiB", "s to start", "s to restore", "MiB/s"},
               restores);
}

std::string sizes(const Signoff& signoff) {
  std::vector<std::vector<std::string>> checkpoints;
  for (const CheckpointRow& one : signoff.checkpoints)
    checkpoints.push_back({std::to_string(one.step), std::to_string(one.files),
                           mebibytes(static_cast<double>(one.bytes))});
  std::vector<std::vector<std::string>> memory;
  for (const MemoryRow& one : signoff.memory)
    memory.push_back({html(one.segment), html(one.phase), html(one.name),
                      mebibytes(static_cast<double>(one.bytes))});
  return table("Checkpoints on disk", {"step", "files", "MiB"}, checkpoints) +
         table("Memory, the most of any rank", {"segment", "after phase", "what", "MiB"}, memory);
}

std::string names(const std::string& caption, const std::map<std::string, std::string>& values) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(values.size());
  for (const auto& [name, value] : values) rows.push_back({html(name), html(value)});
  return table(caption, {"what", "value"}, rows);
}

}  // namespace

std::string render_html(const Signoff& signoff) {
  std::string text(kHead);
  const std::string what =
      signoff.words.empty() ? signoff.subject : fmt::format("{}", fmt::join(signoff.words, " "));
  text += fmt::format("<title>Sign-off: {0} {1}</title></head><body>\n<h1>{1}: {0}</h1>\n",
                      html(what), outcome_name(signoff.outcome));
  text += fmt::format(
      "<p>{} consecutive saves of {} ranks on {}, a kill, a resume in new processes, another save, "
      "a second kill and resume.</p>\n<p><code>{}</code></p>\n",
      signoff.saves, signoff.world, html(signoff.device), html(signoff.command));
  text += "<h2>Still unmeasured</h2>\n<ul>\n";
  for (const std::string& line : signoff.unmeasured) text += "<li>" + html(line) + "</li>\n";
  text += "</ul>\n" + requirements(signoff) + times(signoff) + sizes(signoff);
  text += names("Bound to", signoff.provenance);
  if (!signoff.versions.empty()) text += names("Versions, by the program's word", signoff.versions);
  return text + "<p>signoff.json holds the SHA-256 of every evidence file.</p>\n</body></html>\n";
}

}  // namespace savegate::reports
