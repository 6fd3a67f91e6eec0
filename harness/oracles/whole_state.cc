#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/resume.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kRngStreams = 4;  // CPU, GPU, Python, NumPy or their like

void check_kinds(const SaveGroup& group, Lines& lines) {
  std::set<std::string> kinds;
  for (const SaveCall& call : group.calls) {
    std::size_t streams = 0;
    for (const Item& item : call.begin->items) {
      kinds.insert(item.kind);
      streams += item.kind == "rng" ? 1 : 0;
    }
    if (streams < kRngStreams) {
      lines.push_back(fmt::format("{}: {} RNG streams of {}",
                                  quote(*group.life, call.rank, *call.begin), streams,
                                  kRngStreams));
    }
  }
  for (const char* kind : {"parameter", "optimizer", "scheduler", "counter"}) {
    if (!kinds.contains(kind)) {
      lines.push_back(fmt::format("life {} step {}: no item of kind {}", group.life->record.number,
                                  group.step, kind));
    }
  }
}

std::set<std::string> stored_names(const std::vector<Item>& items) {
  std::set<std::string> names;
  for (const Item& item : items) {
    if (item.kind != "contract" && item.kind != "derived") names.insert(item.name);
  }
  return names;
}

void check_names(const View& view, const Life& life, int rank, const Event& resumed, Lines& lines) {
  const auto writers = view.writers(*resumed.step, life.record.started_ns);
  if (writers.empty()) return;  // judged by F2
  const SaveCall* call = writers.back()->call_of(rank);
  if (call == nullptr) return;
  const auto saved = stored_names(call->begin->items);
  const auto restored = stored_names(resumed.items);
  for (const std::string& name : saved) {
    if (!restored.contains(name)) {
      lines.push_back(
          fmt::format("{}: `{}` was saved and not restored", quote(life, rank, resumed), name));
    }
  }
  for (const std::string& name : restored) {
    if (!saved.contains(name)) {
      lines.push_back(
          fmt::format("{}: `{}` was restored and never saved", quote(life, rank, resumed), name));
    }
  }
}

// The updates that the newest state goes back to: each life's up to the step that the next resumed
// at.
class Lineage {
 public:
  explicit Lineage(const View& view) : view_(view) {
    const auto& lives = view.evidence().lives;
    std::int64_t cut = INT64_MAX;
    for (std::size_t i = lives.size(); i-- > 0;) {
      keep(lives[i], cut == INT64_MAX ? reached_by_all(lives[i]) : cut);
      const auto resumed = resumed_step(lives[i]);
      if (!resumed) continue;  // refused, or died before: it added nothing
      if (!*resumed) break;    // began afresh
      cut = std::min(cut, **resumed);
    }
  }

  void check(Lines& lines) const {
    std::vector<Range> ranges = consumed();
    // The reach of the ranges so far, and apart from it that of steps other than its own: two ranks
    // of one step may consume the same samples, two steps may not.
    const Range* reach = nullptr;
    const Range* of_another_step = nullptr;
    for (const Range& range : ranges) {
      const Range* before = reach != nullptr && reach->step == range.step ? of_another_step : reach;
      if (before != nullptr && before->last >= range.first) {
        const Range& later = before->step < range.step ? range : *before;
        lines.push_back(fmt::format("{}: sample {} was consumed at step {} already",
                                    quote(*later.update.life, later.rank, *later.update.event),
                                    range.first, std::min(before->step, range.step)));
        return;
      }
      if (reach != nullptr && range.first > reach->last && range.first - 1 > reach->last) {
        lines.push_back(
            fmt::format("sample {} was never consumed, later ones were", reach->last + 1));
        return;
      }
      if (reach == nullptr || range.last > reach->last) {
        if (reach != nullptr && reach->step != range.step) of_another_step = reach;
        reach = &range;
      }
    }
  }

  std::size_t samples() const {
    return static_cast<std::size_t>(
        std::count_if(updates_.begin(), updates_.end(),
                      [](const auto& update) { return !update.second.event->samples.empty(); }));
  }

 private:
  struct Update {
    const Life* life;
    const Event* event;
  };

  struct Range {
    std::int64_t first;
    std::int64_t last;
    std::int64_t step;
    int rank;
    Update update;
  };

  // By their first sample.
  std::vector<Range> consumed() const {
    std::vector<Range> ranges;
    for (const auto& [key, update] : updates_) {
      for (const auto& [first, last] : update.event->samples) {
        if (first <= last) ranges.push_back({first, last, key.second, key.first, update});
      }
    }
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const Range& a, const Range& b) { return a.first < b.first; });
    return ranges;
  }

  // The last step that every rank tells of: beyond it a killed rank's samples are not on record.
  static std::int64_t reached_by_all(const Life& life) {
    std::int64_t reached = INT64_MAX;
    for (const EventLog& log : life.events) {
      std::int64_t own = -1;
      for (const Event& event : log.events) {
        if (event.kind == EventKind::kUpdate) own = std::max(own, event.step.value_or(-1));
      }
      reached = std::min(reached, own);
    }
    return reached;
  }

  // The step that all of the life goes back to; nothing where no rank restored or began.
  std::optional<std::optional<std::int64_t>> resumed_step(const Life& life) const {
    for (int rank = 0; rank < view_.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed != nullptr && resumed->ok) return resumed->step;
    }
    return std::nullopt;
  }

  void keep(const Life& life, std::int64_t up_to) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      for (const Event& event : life.events[rank].events) {
        if (event.kind != EventKind::kUpdate || !event.step || *event.step > up_to) continue;
        updates_.insert_or_assign({static_cast<int>(rank), *event.step}, Update{&life, &event});
      }
    }
  }

  const View& view_;
  std::map<std::pair<int, std::int64_t>, Update> updates_;  // (rank, step)
};

}  // namespace

reports::Verdict whole_state(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const SaveGroup& group : view.groups()) {
    const bool has_items =
        std::any_of(group.calls.begin(), group.calls.end(),
                    [](const SaveCall& call) { return !call.begin->items.empty(); });
    if (!has_items) continue;
    ++judged;
    check_kinds(group, lines);
  }
  for (const Life& life : evidence.lives) {
    for (int rank = 0; rank < view.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed != nullptr && resumed->ok && resumed->step) {
        check_names(view, life, rank, *resumed, lines);
      }
    }
  }
  const Lineage lineage(view);
  lineage.check(lines);
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("R2", first, std::move(lines));
  }
  if (judged == 0) return skip("R2", "no save tells of its items");
  return pass("R2", fmt::format("{} saves hold all kinds of state, samples of {} updates are "
                                "disjoint and complete",
                                judged, lineage.samples()));
}

}  // namespace savegate::harness
