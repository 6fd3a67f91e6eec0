#include "harness/oracles/samples.h"

#include <fmt/format.h>

#include <algorithm>

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

struct Update {
  const Life* life;
  const Event* event;
};
using Updates = std::map<std::pair<int, std::int64_t>, Update>;  // (rank, step); the last of each

struct Range {
  std::int64_t first;
  std::int64_t last;
  std::int64_t step;
  int rank;
  Update update;
};

// The last step that every rank tells of: beyond it a killed rank's samples are not on record.
std::int64_t reached_by_all(const Life& life) {
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
std::optional<std::optional<std::int64_t>> resumed_step(const View& view, const Life& life) {
  for (int rank = 0; rank < view.world(); ++rank) {
    const Event* resumed = resumed_event(life, rank);
    if (resumed != nullptr && resumed->ok) return resumed->step;
  }
  return std::nullopt;
}

bool began_afresh(const View& view, const Life& life) {
  const auto resumed = resumed_step(view, life);
  return resumed && !*resumed;
}

void keep(const Life& life, std::int64_t up_to, Updates& updates) {
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    for (const Event& event : life.events[rank].events) {
      if (event.kind != EventKind::kUpdate || !event.step || *event.step > up_to) continue;
      updates.insert_or_assign({static_cast<int>(rank), *event.step}, Update{&life, &event});
    }
  }
}

// The updates that the newest state goes back to: each life's up to the step that the next resumed
// at.
Updates lineage(const View& view) {
  Updates updates;
  const auto& lives = view.evidence().lives;
  std::int64_t cut = INT64_MAX;
  for (std::size_t i = lives.size(); i-- > 0;) {
    keep(lives[i], cut == INT64_MAX ? reached_by_all(lives[i]) : cut, updates);
    const auto resumed = resumed_step(view, lives[i]);
    if (!resumed) continue;  // refused, or died before: it added nothing
    if (!*resumed) break;    // began afresh
    cut = std::min(cut, **resumed);
  }
  return updates;
}

// By their first sample.
std::vector<Range> consumed(const Updates& updates) {
  std::vector<Range> ranges;
  for (const auto& [key, update] : updates) {
    for (const auto& [first, last] : update.event->samples) {
      if (first <= last) ranges.push_back({first, last, key.second, key.first, update});
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const Range& a, const Range& b) { return a.first < b.first; });
  return ranges;
}

// What keeps the samples from being disjoint and complete, "" if they are.
std::string first_flaw(const std::vector<Range>& ranges) {
  // The reach of the ranges so far, and apart from it that of steps other than its own: two ranks
  // of one step may consume the same samples, two steps may not.
  const Range* reach = nullptr;
  const Range* of_another_step = nullptr;
  for (const Range& range : ranges) {
    const Range* before = reach != nullptr && reach->step == range.step ? of_another_step : reach;
    if (before != nullptr && before->last >= range.first) {
      const Range& later = before->step < range.step ? range : *before;
      return fmt::format("{}: sample {} was consumed at step {} already",
                         quote(*later.update.life, later.rank, *later.update.event), range.first,
                         std::min(before->step, range.step));
    }
    if (reach != nullptr && range.first > reach->last && range.first - 1 > reach->last) {
      return fmt::format("sample {} was never consumed, later ones were", reach->last + 1);
    }
    if (reach == nullptr || range.last > reach->last) {
      if (reach != nullptr && reach->step != range.step) of_another_step = reach;
      reach = &range;
    }
  }
  return "";
}

std::optional<std::int64_t> lowest(const Event& update) {
  std::optional<std::int64_t> found;
  for (const auto& [first, last] : update.samples) {
    if (first <= last && (!found || first < *found)) found = first;
  }
  return found;
}

// A rank's later step consumes lower ids than an earlier one of the same life.
std::string step_back(const Updates& updates) {
  const Updates::value_type* before = nullptr;
  for (const auto& each : updates) {
    const auto low = lowest(*each.second.event);
    if (!low) continue;
    if (before != nullptr && before->first.first == each.first.first) {
      const std::int64_t earlier = *lowest(*before->second.event);
      if (*low < earlier) {
        return fmt::format("{}: sample {} after {}",
                           quote(*each.second.life, each.first.first, *each.second.event), *low,
                           earlier);
      }
    }
    before = &each;
  }
  return "";
}

// What shows that ids are no positions in a stream, "" if nothing does. It is asked of a life by
// itself; of one that resumed only whether it goes back, for that is never done by a restore.
std::string why_no_positions(const View& view) {
  for (const Life& life : view.evidence().lives) {
    Updates own;
    keep(life, reached_by_all(life), own);
    std::string why = step_back(own);
    if (why.empty() && began_afresh(view, life)) why = first_flaw(consumed(own));
    if (!why.empty()) return fmt::format("life {} alone: {}", life.record.number, why);
  }
  return "";
}

std::vector<std::pair<std::int64_t, std::int64_t>> in_order(const Event& update) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ids(update.samples.begin(),
                                                         update.samples.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string ids_of(const Event& update) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, update.samples.size()); ++i) {
    const auto& [first, last] = update.samples[i];
    text += fmt::format("{}{}", i == 0 ? "" : " ",
                        first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  if (text.empty()) return "none";
  return update.samples.size() > kShown ? text + " …" : text;
}

// A resumed life does again what the life before it did at these steps.
std::size_t compare_steps_done_again(const View& view, Lines& flaws) {
  std::size_t compared = 0;
  Updates earlier;
  for (const Life& life : view.evidence().lives) {
    if (began_afresh(view, life)) earlier.clear();
    const auto resumed = resumed_step(view, life);
    Updates own;
    keep(life, INT64_MAX, own);
    for (const auto& [key, update] : own) {
      const auto before = earlier.find(key);
      const bool again = resumed && *resumed && key.second > **resumed && before != earlier.end();
      if (again) {
        ++compared;
        if (in_order(*update.event) != in_order(*before->second.event)) {
          flaws.push_back(fmt::format("{}: samples {}, but {} in life {}",
                                      quote(life, key.first, *update.event), ids_of(*update.event),
                                      ids_of(*before->second.event),
                                      before->second.life->record.number));
        }
      }
      earlier.insert_or_assign(key, update);
    }
  }
  return compared;
}

}  // namespace

SampleCheck check_samples(const View& view) {
  SampleCheck check;
  const Updates updates = lineage(view);
  const auto told = std::count_if(updates.begin(), updates.end(), [](const auto& update) {
    return !update.second.event->samples.empty();
  });
  if (told == 0) {
    check.summary = "no update tells of its samples";
  } else if (const std::string why = why_no_positions(view); !why.empty()) {
    const std::size_t compared = compare_steps_done_again(view, check.flaws);
    check.summary = fmt::format(
        "sample ids are no positions in a stream ({}): {} updates that a resume did again consumed "
        "the same, no more was judged",
        why, compared);
  } else {
    const std::string flaw = first_flaw(consumed(updates));
    if (!flaw.empty()) check.flaws.push_back(flaw);
    check.summary = fmt::format("samples of {} updates are disjoint and complete", told);
  }
  return check;
}

}  // namespace savegate::harness
