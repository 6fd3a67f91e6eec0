#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/html_pictures.h"
#include "reports/html_text.h"

namespace savegate::reports {
namespace {

constexpr double kLeft = 112;
constexpr double kRight = 948;
constexpr double kRow = 15;
constexpr double kGap = 20;  // above each rank, for its signs
constexpr double kTop = 26;

struct RowKind {
  SliceKind kind;
  const char* label;
  const char* style;
  bool labelled;  // each slice has a name worth writing
};
constexpr std::array<RowKind, 7> kRows = {{{SliceKind::kSave, "saves", "save", true},
                                           {SliceKind::kPhase, "phases", "phase", true},
                                           {SliceKind::kCollective, "collectives", "coll", true},
                                           {SliceKind::kOpen, "create", "name", false},
                                           {SliceKind::kWrite, "write", "write", false},
                                           {SliceKind::kSync, "fsync", "sync", false},
                                           {SliceKind::kName, "rename …", "name", false}}};

// A sign at (x, y): a triangle for a fault, a filled cross for a kill, a bar for the end.
std::string sign(InstantKind kind, double x, double y) {
  switch (kind) {
    case InstantKind::kFault:
      return fmt::format("<path class=\"fault\" d=\"M{:.1f} {:.1f}l6 11h-12z\"/>", x, y);
    case InstantKind::kKill:
      return fmt::format(
          "<path class=\"kill\" d=\"M{0:.1f} {1:.1f}l10 10M{2:.1f} {1:.1f}l-10 10\"/>", x - 5,
          y + 1, x + 5);
    case InstantKind::kEnd:
      return fmt::format("<path class=\"end\" d=\"M{:.1f} {:.1f}v11\"/>", x, y);
  }
  return "";
}

class Timeline {
 public:
  Timeline(const SceneLife& life, int world, std::string id) : life_(life), id_(std::move(id)) {
    begin_ = UINT64_MAX;
    for (const Slice& slice : life.slices) widen(slice.begin_ns, slice.end_ns);
    for (const Instant& instant : life.instants) widen(instant.time_ns, instant.time_ns);
    if (begin_ > end_) begin_ = end_ = life.begin_ns;
    for (const RowKind& row : kRows)
      if (std::any_of(life.slices.begin(), life.slices.end(),
                      [&](const Slice& slice) { return slice.kind == row.kind; }))
        rows_.push_back(&row);
    choose_ranks(world);
  }

  std::string draw() {
    const double rank_height = kGap + kRow * static_cast<double>(rows_.size());
    const double height = kTop + rank_height * static_cast<double>(ranks_.size()) + 8;
    std::string svg = fmt::format(
        "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"timeline of life {0}, "
        "scrolls sideways\">"
        "<svg class=\"timeline\" viewBox=\"0 0 960 {1:.0f}\" role=\"img\" "
        "aria-labelledby=\"{2}-t {2}-d\"><title id=\"{2}-t\">Life {0}: what each rank did over "
        "{3}</title><desc id=\"{2}-d\">{4}</desc>",
        life_.number, height, id_, seconds_text(seconds(begin_, end_)), html(words()));
    svg += axis(height);
    double y = kTop;
    for (const int rank : ranks_) {
      svg += fmt::format(
          "<path class=\"rule\" d=\"M0 {0:.0f}H960\"/><text class=\"rank\" x=\"4\" "
          "y=\"{1:.0f}\">rank {2}</text>",
          y, y + 14, rank);
      double row_y = y + kGap;
      for (const RowKind* row : rows_) {
        svg += draw_row(rank, *row, row_y);
        row_y += kRow;
      }
      svg += draw_signs(rank, y + 4, row_y);
      y += rank_height;
    }
    svg += "</svg></div>";
    if (left_out_ > 0)
      svg += fmt::format("<p class=\"note\">{} further ranks are not drawn.</p>", left_out_);
    return svg;
  }

 private:
  static double seconds(std::uint64_t from, std::uint64_t to) {
    return to > from ? static_cast<double>(to - from) / 1e9 : 0;
  }
  void widen(std::uint64_t from, std::uint64_t to) {
    begin_ = std::min(begin_, from);
    end_ = std::max(end_, to);
  }

  // Those with a fault or a failed slice come first where not all can be drawn.
  void choose_ranks(int world) {
    for (int rank = 0; rank < world; ++rank) ranks_.push_back(rank);
    const auto failed = [&](int rank) {
      return std::any_of(life_.instants.begin(), life_.instants.end(),
                         [&](const Instant& instant) {
                           return instant.rank == rank && instant.kind != InstantKind::kEnd;
                         }) ||
             std::any_of(life_.slices.begin(), life_.slices.end(),
                         [&](const Slice& slice) { return slice.rank == rank && slice.failed; });
    };
    if (world <= kRanksDrawn) return;
    std::stable_partition(ranks_.begin(), ranks_.end(), failed);
    ranks_.resize(kRanksDrawn);
    std::sort(ranks_.begin(), ranks_.end());
    left_out_ = world - kRanksDrawn;
  }

  double x(std::uint64_t time_ns) const {
    if (end_ == begin_) return kLeft;
    return kLeft + (kRight - kLeft) * static_cast<double>(time_ns - begin_) /
                       static_cast<double>(end_ - begin_);
  }

  std::string words() const {
    std::string text;
    for (const Instant& instant : life_.instants)
      text += fmt::format("{} rank {}: {}. ", seconds_text(seconds(begin_, instant.time_ns)),
                          instant.rank, instant.name);
    for (const Slice& slice : life_.slices)
      if (slice.kind == SliceKind::kSave)
        text += fmt::format("rank {} {}: {}. ", slice.rank, slice.name, slice.detail);
    constexpr std::size_t kWords = 4000;
    return text.size() <= kWords ? text : text.substr(0, kWords) + "…";
  }

  std::string axis(double height) const {
    std::string out;
    for (int i = 0; i <= 4; ++i) {
      const double at = kLeft + (kRight - kLeft) * i / 4;
      out += fmt::format(
          "<path class=\"grid\" d=\"M{0:.0f} 18V{1:.0f}\"/><text class=\"tick\" x=\"{0:.0f}\" "
          "y=\"12\" "
          "text-anchor=\"{2}\">{3}</text>",
          at, height,
          i == 0   ? "start"
          : i == 4 ? "end"
                   : "middle",
          seconds_text(seconds(begin_, end_) * i / 4));
    }
    return out;
  }

  std::string draw_row(int rank, const RowKind& row, double y) const {
    std::string out = fmt::format("<text class=\"row\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>",
                                  kLeft - 8, y + 10, row.label);
    if (row.labelled) {
      for (const Slice& slice : life_.slices)
        if (slice.rank == rank && slice.kind == row.kind) out += draw_named(slice, row, y);
      return out;
    }
    // Operations closer than a pixel are one mark: the number of marks is bounded by the width.
    std::string whole;
    std::string failed;
    double last = -1;
    for (const Slice& slice : life_.slices) {
      if (slice.rank != rank || slice.kind != row.kind) continue;
      const double from = x(slice.begin_ns);
      const double to = std::max(from + 1.2, x(slice.end_ns));
      if (slice.failed) {
        failed += fmt::format("M{:.1f} {:.0f}v13h{:.1f}v-13z", from, y - 1, to - from + 1);
      } else if (to > last + 0.8) {
        const double start = std::max(from, last);
        whole += fmt::format("M{:.1f} {:.0f}h{:.1f}v11h-{:.1f}z", start, y, to - start, to - start);
        last = to;
      }
    }
    if (!whole.empty()) out += fmt::format("<path class=\"{}\" d=\"{}\"/>", row.style, whole);
    if (!failed.empty()) out += fmt::format("<path class=\"bad\" d=\"{}\"/>", failed);
    return out;
  }

  std::string draw_named(const Slice& slice, const RowKind& row, double y) const {
    const double from = x(slice.begin_ns);
    const double width = std::max(1.5, x(slice.end_ns) - from);
    std::string out = fmt::format(
        "<g><title>{} ({}, {})</title><rect class=\"{}{}\" x=\"{:.1f}\" y=\"{:.0f}\" "
        "width=\"{:.1f}\" height=\"12\" rx=\"2\"/>",
        html(slice.name), seconds_text(seconds(slice.begin_ns, slice.end_ns)), html(slice.detail),
        row.style, slice.failed ? " bad" : "", from, y, width);
    const std::string name = slice.failed ? "✗ " + slice.name : slice.name;
    if (width > 6.2 * static_cast<double>(name.size()))
      out += fmt::format("<text class=\"in\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", from + 3,
                         y + 9.5, html(name));
    return out + "</g>";
  }

  std::string draw_signs(int rank, double y, double bottom) const {
    std::string out;
    int lettered = 0;
    for (const Instant& instant : life_.instants) {
      if (instant.rank != rank) continue;
      const double at = x(instant.time_ns);
      out += fmt::format("<g><title>{}</title>", html(instant.detail));
      if (instant.kind != InstantKind::kEnd)
        out +=
            fmt::format("<path class=\"line\" d=\"M{:.1f} {:.0f}V{:.0f}\"/>", at, y + 10, bottom);
      out += sign(instant.kind, at, y);
      if (instant.kind != InstantKind::kEnd && lettered++ == 0) {
        const bool left = at > 560;
        out += fmt::format(
            "<text class=\"sign\" x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>",
            left ? at - 10 : at + 10, y + 10, left ? "end" : "start",
            html(shortened(instant.name)));
      }
      out += "</g>";
    }
    return out;
  }

  static std::string shortened(const std::string& text) {
    constexpr std::size_t kLength = 70;
    return text.size() <= kLength ? text : text.substr(0, kLength) + "…";
  }

  const SceneLife& life_;
  std::string id_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::vector<const RowKind*> rows_;
  std::vector<int> ranks_;
  int left_out_ = 0;
};

}  // namespace

std::string draw_timeline(const SceneLife& life, int world, const std::string& id) {
  return Timeline(life, world, id).draw();
}

std::string timeline_legend() {
  const auto entry = [](const std::string& mark, const char* word) {
    return "<span><svg viewBox=\"0 0 16 14\" aria-hidden=\"true\">" + mark + "</svg>" + word +
           "</span>";
  };
  return "<p class=\"legend\">" + entry(sign(InstantKind::kFault, 8, 1), "fault") +
         entry(sign(InstantKind::kKill, 8, 1), "kill") +
         entry(sign(InstantKind::kEnd, 8, 1), "the rank ended") +
         entry("<path class=\"bad\" d=\"M2 1h12v12h-12z\"/>", "✗ failed or never finished") +
         "</p>";
}

std::string draw_bars(const std::vector<Bar>& bars, const std::string& title,
                      const std::string& id) {
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  const double height = 20.0 * static_cast<double>(bars.size()) + 4;
  std::string svg = fmt::format(
      "<svg class=\"bars\" viewBox=\"0 0 480 {0:.0f}\" role=\"img\" "
      "aria-labelledby=\"{1}-t {1}-d\"><title id=\"{1}-t\">{2}</title><desc id=\"{1}-d\">",
      height, id, html(title));
  for (const Bar& bar : bars) svg += html(bar.label + ": " + bar.text + ". ");
  svg += "</desc>";
  double y = 2;
  for (const Bar& bar : bars) {
    const double width = most > 0 ? 190 * bar.value / most : 0;
    svg += fmt::format(
        "<text class=\"row\" x=\"188\" y=\"{0:.0f}\">{1}</text><rect class=\"save\" x=\"196\" "
        "y=\"{2:.0f}\" width=\"{3:.1f}\" height=\"14\" rx=\"2\"/><text class=\"val\" x=\"{4:.1f}\" "
        "y=\"{0:.0f}\">{5}</text>",
        y + 12, html(bar.label.size() > 34 ? bar.label.substr(0, 33) + "…" : bar.label), y + 1,
        std::max(1.0, width), 202 + width, html(bar.text));
    y += 20;
  }
  return svg + "</svg>";
}

}  // namespace savegate::reports
