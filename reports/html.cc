#include "reports/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reports/cases.h"
#include "reports/html_pictures.h"
#include "reports/html_style.h"
#include "reports/html_text.h"
#include "reports/terminal.h"

namespace savegate::reports {
namespace {

constexpr std::size_t kTextBytes = 1U << 20;  // of failures, beside their pictures
constexpr std::size_t kPassingLines = 8000;   // in the table of all scenarios
constexpr std::size_t kLinesOfAKind = 40;     // fired records, digests: more are in the evidence
constexpr std::size_t kHistoryShown = 20;

class Page {
 public:
  Page(const RunRecord& run, const HtmlInput& input) : run_(run), input_(input) {}

  std::string print() {
    for (const ScenarioResult& result : run_.scenarios)
      if (did_not_pass(result.outcome)) failures_.push_back(&result);
    head();
    requirements();
    if (!failures_.empty()) all_failures();
    measurements();
    scenarios();
    provenance();
    out_ += "</main></body></html>\n";
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  static std::string measured(const Measurement& value, std::string (*text)(double)) {
    return value ? text(*value) : "not obtained";
  }

  void head() {
    const Outcome outcome = overall(run_);
    add("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<link rel=\"icon\" href=\"data:,\"><title>{} {} – "
        "savegate</title><style>{}</style></head><body>"
        "<a class=\"skip\" href=\"#main\">Skip to the verdict</a>",
        outcome_name(outcome), html(run_.id), html_style());
    add("<header><h1>savegate report · {}</h1><nav aria-label=\"Parts of the report\">"
        "<a href=\"#requirements\">Requirements</a>{}<a href=\"#measurements\">Times and memory</a>"
        "<a href=\"#scenarios\">Scenarios</a><a href=\"#provenance\">What was "
        "run</a></nav></header>",
        html(run_.id), failures_.empty() ? "" : "<a href=\"#failures\">Failures</a>");
    add("<main id=\"main\"><p class=\"verdict\">{} {}</p>", outcome_badge(outcome),
        html(render_counts(run_)));
  }

  struct RequirementRow {
    std::size_t counts[4] = {};
    const ScenarioResult* first = nullptr;  // that did not pass

    std::size_t count(Outcome outcome) const { return counts[static_cast<std::size_t>(outcome)]; }
    Outcome worst() const {
      for (const Outcome outcome : {Outcome::kFail, Outcome::kInvalid, Outcome::kPass})
        if (count(outcome) > 0) return outcome;
      return Outcome::kSkip;
    }
  };
  using RequirementRows =
      std::map<std::string, RequirementRow, bool (*)(const std::string&, const std::string&)>;

  // C2 comes before C10.
  static bool in_order(const std::string& left, const std::string& right) {
    if (left[0] != right[0] || left.size() == right.size()) return left < right;
    return left.size() < right.size();
  }

  // What does not hold at once, the rest behind a line that counts it.
  void requirements() {
    RequirementRows rows(&in_order);
    for (const ScenarioResult& result : run_.scenarios)
      for (const Verdict& verdict : result.verdicts) {
        RequirementRow& row = rows[verdict.requirement];
        ++row.counts[static_cast<std::size_t>(verdict.outcome)];
        if (row.first == nullptr && did_not_pass(verdict.outcome)) row.first = &result;
      }
    const auto broken = [](const RequirementRow& row) { return did_not_pass(row.worst()); };
    const auto of = [&](Outcome outcome) {
      return std::count_if(rows.begin(), rows.end(),
                           [&](const auto& entry) { return entry.second.worst() == outcome; });
    };
    out_ +=
        "<section aria-labelledby=\"requirements\"><h2 id=\"requirements\">Verdicts by "
        "requirement</h2>";
    if (of(Outcome::kFail) + of(Outcome::kInvalid) > 0) requirement_table(rows, broken);
    add("<details><summary>{} hold, {} were not judged</summary>", of(Outcome::kPass),
        of(Outcome::kSkip));
    requirement_table(rows, [&](const RequirementRow& row) { return !broken(row); });
    out_ += "</details></section>";
  }

  template <class Wanted>
  void requirement_table(const RequirementRows& rows, Wanted wanted) {
    out_ +=
        "<table class=\"wide\"><thead><tr><th scope=\"col\">Requirement</th><th "
        "scope=\"col\">Verdict"
        "</th><th scope=\"col\">PASS</th><th scope=\"col\">FAIL</th><th scope=\"col\">INVALID</th>"
        "<th scope=\"col\">Rule</th></tr></thead><tbody>";
    for (const auto& [id, row] : rows) {
      if (!wanted(row)) continue;
      const auto rule = input_.rules.find(id);
      add("<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\" data-of=\"PASS\">{}</td>"
          "<td class=\"n\" data-of=\"FAIL\">{}</td><td class=\"n\" "
          "data-of=\"INVALID\">{}</td><td>{}",
          html(id), outcome_badge(row.worst()), row.count(Outcome::kPass),
          row.count(Outcome::kFail), row.count(Outcome::kInvalid),
          rule == input_.rules.end() ? "" : html(rule->second));
      if (row.first != nullptr && did_not_pass(row.first->outcome))
        add(" <a href=\"#{}\">first: {}</a>", anchor(*row.first), html(name(*row.first)));
      out_ += "</td></tr>";
    }
    out_ += "</tbody></table>";
  }

  std::string anchor(const ScenarioResult& result) const {
    return fmt::format("s{}", &result - run_.scenarios.data() + 1);
  }

  static std::string name(const ScenarioResult& result) {
    return result.point.empty() ? full_name(result) : full_name(result) + " [" + result.point + "]";
  }

  void all_failures() {
    out_ += "<section aria-labelledby=\"failures\"><h2 id=\"failures\">What did not pass</h2>";
    const std::size_t start = out_.size();
    for (const ScenarioResult* result : failures_) {
      add("<article class=\"failure{}\" aria-labelledby=\"{}\"><h3 id=\"{}\">{} {}</h3>",
          result->outcome == Outcome::kInvalid ? " is-invalid" : "", anchor(*result),
          anchor(*result), outcome_badge(result->outcome), html(name(*result)));
      add("<p>{}</p>", html(first_sentence(*result)));
      const bool with_picture = out_.size() - start < kPictureBytes;
      if (out_.size() - start < kPictureBytes + kTextBytes / 2) failure(*result, with_picture);
      if (!result->repeat.empty()) {
        out_ += "<h4>Repeat</h4>";
        add("<pre tabindex=\"0\" aria-label=\"command that repeats it\">{}</pre>",
            html(result->repeat));
      }
      out_ += "</article>";
    }
    out_ += "</section>";
  }

  void failure(const ScenarioResult& result, bool with_picture) {
    if (const std::string words = standing_words(result); !words.empty())
      add("<p class=\"note\">{}</p>", html(words));
    const auto stored = input_.scenes.find(result.directory);
    const bool has_scene = stored != input_.scenes.end();
    if (has_scene && with_picture) scene(result, stored->second.scene);
    if (!has_scene || !with_picture)
      out_ +=
          "<p class=\"note\">Its timeline is not drawn here: the evidence is gone, or the page "
          "would become too large. <code>trace.perfetto.json</code> in its folder shows it.</p>";
    for (const Verdict& verdict : result.verdicts) {
      if (!did_not_pass(verdict.outcome)) continue;
      add("<h4>{} {}: {}</h4>", outcome_badge(verdict.outcome), html(verdict.requirement),
          html(verdict.summary));
      lines(verdict.evidence);
    }
    history(result);
    if (has_scene) files(stored->second.files);
  }

  void lines(const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    out_ += "<pre>";
    for (std::size_t i = 0; i < texts.size() && i < kLinesOfAKind; ++i) add("{}\n", html(texts[i]));
    if (texts.size() > kLinesOfAKind) add("… and {} more\n", texts.size() - kLinesOfAKind);
    out_ += "</pre>";
  }

  void scene(const ScenarioResult& result, const Scene& scene) {
    out_ += timeline_legend();
    for (const SceneLife& life : scene.lives) {
      const auto summary =
          std::find_if(result.lives.begin(), result.lives.end(),
                       [&](const LifeSummary& one) { return one.number == life.number; });
      add("<h4>Life {}{}</h4>", life.number,
          summary == result.lives.end() ? "" : html(": " + summary->outcome));
      out_ += draw_timeline(life, scene.world, fmt::format("{}-l{}", anchor(result), life.number));
    }
    out_ += "<h4>First error on both sides</h4><dl>";
    const auto error = [&](const char* side, const std::string& text) {
      add("<dt>{}</dt><dd><code>{}</code></dd>", side, text.empty() ? "none seen" : html(text));
    };
    error("file system", scene.first_file_system_error);
    error("save path", scene.first_subject_error);
    out_ += "</dl>";
    digests(scene);
    std::vector<std::string> fired;
    for (const SceneLife& life : scene.lives)
      for (const std::string& line : life.fired)
        fired.push_back(fmt::format("life {} {}", life.number, line));
    add("<details{}><summary>Fired records ({})</summary>", fired.size() <= 4 ? " open" : "",
        fired.size());
    lines(fired);
    out_ += fired.empty() ? "<p>No rule acted.</p></details>" : "</details>";
  }

  void digests(const Scene& scene) {
    if (scene.differences.empty()) return;
    add("<h4>Restored differently from what was saved ({})</h4>", scene.differences.size());
    out_ +=
        "<table class=\"wide\"><thead><tr><th scope=\"col\">Tensor</th><th scope=\"col\">Where</th>"
        "<th scope=\"col\">Range</th><th scope=\"col\">Saved</th><th scope=\"col\">Found</th></tr>"
        "</thead><tbody>";
    for (std::size_t i = 0; i < scene.differences.size() && i < kLinesOfAKind; ++i) {
      const DigestDifference& one = scene.differences[i];
      add("<tr><th scope=\"row\">{}</th><td>life {} rank {}</td><td>{}</td><td "
          "data-of=\"saved\"><code>{}"
          "</code></td><td data-of=\"found\"><code>{}</code></td></tr>",
          html(one.tensor), one.life, one.rank, html(one.range), html(one.saved), html(one.found));
    }
    out_ += "</tbody></table>";
    if (scene.differences.size() > kLinesOfAKind)
      add("<p class=\"note\">… and {} more.</p>", scene.differences.size() - kLinesOfAKind);
  }

  void history(const ScenarioResult& result) {
    const auto found = input_.history.find(lasting_name(result));
    if (found == input_.history.end() || found->second.empty()) return;
    const std::size_t count = std::min(found->second.size(), kHistoryShown);
    add("<h4>The last {} runs, oldest first</h4><p><span class=\"strip\" aria-hidden=\"true\">",
        count);
    std::string words;
    for (std::size_t i = count; i-- > 0;) {
      const HistoryRow& row = found->second[i];
      add("<span title=\"{}\">{}</span>", html(row.run), outcome_sign(row.outcome));
      words += fmt::format("{}{}", words.empty() ? "" : ", ", outcome_name(row.outcome));
    }
    add("</span> <span class=\"note\">{}</span></p>", words);
  }

  void files(const std::vector<std::string>& paths) {
    if (paths.empty()) return;
    add("<details><summary>Evidence files ({})</summary><ul>", paths.size());
    for (const std::string& path : paths)
      add("<li><a href=\"./{}\">{}</a></li>", link_path(path), html(path));
    out_ += "</ul></details>";
  }

  void measurements() {
    out_ +=
        "<section aria-labelledby=\"measurements\"><h2 id=\"measurements\">Times and memory</h2>"
        "<div class=\"plots\">";
    lives_plot("Save, last of a life, slowest rank", &LifeSummary::save_seconds);
    lives_plot("Restore, slowest rank", &LifeSummary::restore_seconds);
    out_ += "</div>";
    const auto found = input_.scenes.find(input_.measured);
    if (found == input_.scenes.end()) {
      out_ +=
          "<p class=\"note\">Times and memory by phase: not obtained (no evidence "
          "kept).</p></section>";
      return;
    }
    add("<h3>By phase, in <code>{}</code></h3><div class=\"plots\">", html(input_.measured));
    std::map<std::string, double> seconds;  // of the slowest rank
    std::map<std::string, std::map<std::string, std::optional<std::uint64_t>>> memory;  // the most
    for (const SceneLife& life : found->second.scene.lives) {
      for (const PhaseTime& time : life.times) {
        double& most = seconds[time.phase];
        most = std::max(most, time.seconds);
      }
      for (const MemoryPoint& point : life.memory) {
        std::optional<std::uint64_t>& most = memory[point.name][point.phase];
        most = std::max(most, point.bytes);
      }
    }
    std::vector<Bar> bars;
    bars.reserve(seconds.size());
    for (const auto& [phase, value] : seconds) bars.push_back({phase, value, seconds_text(value)});
    plot("Time, slowest rank", bars);
    if (memory.empty()) plot("Memory", {});
    for (const auto& [memory_name, phases] : memory) {
      bars.clear();
      for (const auto& [phase, bytes] : phases)
        bars.push_back({phase, static_cast<double>(bytes.value_or(0)),
                        bytes ? bytes_text(static_cast<double>(*bytes)) : "not obtained"});
      plot(memory_name + ", the rank with the most", bars);
    }
    out_ += "</div></section>";
  }

  void plot(const std::string& title, const std::vector<Bar>& bars) {
    add("<figure style=\"margin:0\"><figcaption><h4>{}</h4></figcaption>", html(title));
    out_ += bars.empty() ? "<p class=\"note\">not obtained</p>"
                         : draw_bars(bars, title, fmt::format("plot{}", ++plots_));
    out_ += "</figure>";
  }

  void lives_plot(const char* title, Measurement LifeSummary::*of) {
    std::vector<double> values;
    std::size_t without = 0;
    for (const ScenarioResult& result : run_.scenarios)
      for (const LifeSummary& life : result.lives) {
        if (life.*of)
          values.push_back(*(life.*of));
        else
          ++without;
      }
    std::vector<Bar> bars;
    std::sort(values.begin(), values.end());
    if (!values.empty()) {
      const auto at = [&](const char* label, std::size_t index) {
        bars.push_back({label, values[index], seconds_text(values[index])});
      };
      at("fastest", 0);
      at("median", values.size() / 2);
      at("slowest of 95 in 100", (values.size() - 1) * 95 / 100);
      at("slowest", values.size() - 1);
    }
    plot(fmt::format("{} ({} lives; not obtained in {})", title, values.size(), without), bars);
  }

  void scenarios() {
    out_ += "<section aria-labelledby=\"scenarios\"><h2 id=\"scenarios\">Scenarios</h2>";
    for (const Coverage& coverage : run_.coverage)
      add("<p>{}: {} of {} known points tried.</p>", html(coverage.scenario), coverage.tried,
          coverage.known);
    add("<details{}><summary>All {} scenarios and points</summary>",
        run_.scenarios.size() <= 60 ? " open" : "", run_.scenarios.size());
    out_ +=
        "<table class=\"wide\"><thead><tr><th scope=\"col\">Verdict</th><th "
        "scope=\"col\">Scenario</th>"
        "<th scope=\"col\">Rules fired</th><th scope=\"col\">Time</th></tr></thead><tbody>";
    std::size_t passed = 0;
    for (const ScenarioResult& result : run_.scenarios) {
      if (!did_not_pass(result.outcome) && ++passed > kPassingLines) continue;
      std::uint64_t hits = 0;
      for (const FiredCount& fired : result.fired) hits += fired.hits;
      const std::string link =
          did_not_pass(result.outcome)
              ? fmt::format("<a href=\"#{}\">{}</a>", anchor(result), html(name(result)))
              : html(name(result));
      add("<tr><td>{}</td><th scope=\"row\">{}</th><td class=\"n\" data-of=\"fired\">{}</td>"
          "<td class=\"n\">{}</td></tr>",
          outcome_badge(result.outcome), link, hits, measured(result.seconds, &seconds_text));
    }
    out_ += "</tbody></table></details>";
    if (passed > kPassingLines)
      add("<p class=\"note\">{} more that passed are in result.json.</p>", passed - kPassingLines);
    out_ += "</section>";
  }

  void provenance() {
    out_ += "<section aria-labelledby=\"provenance\"><h2 id=\"provenance\">What was run</h2><dl>";
    const auto entry = [&](const std::string& key, const std::string& value) {
      add("<dt>{}</dt><dd>{}</dd>", html(key), value.empty() ? "not obtained" : html(value));
    };
    entry("command", run_.command);
    entry("save path", run_.subject);
    entry("device", run_.device);
    entry("time", measured(run_.seconds, &seconds_text));
    for (const auto& [key, value] : run_.provenance) entry(key, value);
    out_ += "</dl></section>";
  }

  const RunRecord& run_;
  const HtmlInput& input_;
  std::vector<const ScenarioResult*> failures_;
  std::string out_;
  int plots_ = 0;
};

}  // namespace

std::string render_html(const RunRecord& run, const HtmlInput& input) {
  return Page(run, input).print();
}

}  // namespace savegate::reports
