#include "harness/oracles/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/compare.h"
#include "harness/oracles/tampering.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

// An update that ran on the rank after the call had returned and before the save was durable.
const Event* update_in_between(const Life& life, const SaveCall& call) {
  if (call.end == nullptr || call.durable == nullptr) return nullptr;
  for (const Event& event : life.events[static_cast<std::size_t>(call.rank)].events) {
    if (event.kind == EventKind::kUpdate && event.changed && event.time_ns > call.end->time_ns &&
        event.time_ns < call.durable->time_ns) {
      return &event;
    }
  }
  return nullptr;
}

// The save that an update could have leaked into: with the evidence of it.
Lines exposure(const SaveGroup& group) {
  for (const SaveCall& call : group.calls) {
    const Event* update = update_in_between(*group.life, call);
    if (update == nullptr) continue;
    return {quote(*group.life, call.rank, *call.begin), quote(*group.life, call.rank, *update),
            quote(*group.life, call.rank, *call.durable)};
  }
  return {};
}

// The step whose state the item holds instead; nothing if it is that of no step on record.
std::optional<std::int64_t> state_of_step(const View& view, int rank, const Item& item) {
  for (const SaveGroup& group : view.groups()) {
    const SaveCall* call = group.call_of(rank);
    const Item* held = call == nullptr ? nullptr : find_item(call->begin->items, item);
    if (held != nullptr && held->digest == item.digest) return group.step;
  }
  return std::nullopt;
}

struct Judged {
  std::size_t readings = 0;
  std::size_t items = 0;
  Lines lines;
};

// One reading of a step by fresh processes, if a save that can have written it was exposed.
void judge_reading(const View& view, std::int64_t step, std::uint64_t before_ns,
                   const std::vector<std::pair<int, Item>>& items, const std::string& reading,
                   Judged& judged) {
  Lines evidence;
  for (const SaveGroup* group : view.writers(step, before_ns)) {
    if (const Lines seen = exposure(*group); !seen.empty()) evidence = seen;
  }
  if (evidence.empty()) return;
  const auto comparison = compare_with_writers(view, step, before_ns, items);
  ++judged.readings;
  judged.items += comparison->compared;
  if (comparison->equal()) return;
  for (const std::string& difference : comparison->differences) {
    judged.lines.push_back(fmt::format("{}: {}", reading, difference));
  }
  for (const auto& [rank, item] : items) {
    const auto other = state_of_step(view, rank, item);
    if (!other || *other <= step) continue;
    judged.lines.push_back(
        fmt::format("{}: rank {} `{}` is that of step {}", reading, rank, item.name, *other));
    break;
  }
  judged.lines.insert(judged.lines.end(), evidence.begin(), evidence.end());
}

}  // namespace

reports::Verdict consistent_snapshot(const Evidence& evidence) {
  const View view(evidence);
  const auto exposed =
      std::count_if(view.groups().begin(), view.groups().end(),
                    [](const SaveGroup& group) { return !exposure(group).empty(); });
  if (exposed == 0) {
    return skip("G5", evidence.subject.claims.async
                          ? "no update ran between a save call and its end"
                          : "the subject does not save asynchronously");
  }
  Judged judged;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    const std::set<std::int64_t> damaged = damaged_steps(view, i);
    for (const Checkpoint& checkpoint : life.checkpoints) {
      if (!checkpoint.complete || damaged.contains(checkpoint.step)) continue;
      judge_reading(view, checkpoint.step, life.record.ended_ns, checkpoint.items,
                    fmt::format("after life {}: {}", life.record.number, checkpoint.path), judged);
    }
    std::set<std::int64_t> steps;
    for (int rank = 0; rank < view.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed == nullptr || !resumed->ok || !resumed->step) continue;
      if (!damaged.contains(*resumed->step)) steps.insert(*resumed->step);
    }
    for (const std::int64_t step : steps) {
      judge_reading(view, step, life.record.started_ns, restored_items(life, step),
                    fmt::format("life {} restored step {}", life.record.number, step), judged);
    }
  }
  if (!judged.lines.empty()) {
    return violated("G5", "an update that ran while a save was under way is in the checkpoint",
                    std::move(judged.lines));
  }
  if (judged.readings == 0) {
    return skip("G5", "no checkpoint that was written beside an update was read");
  }
  if (judged.items == 0) return invalid_evidence("G5", "zero items compared");
  return pass("G5", fmt::format("{} items of {} readings are as of the call, though updates ran "
                                "during {} saves",
                                judged.items, judged.readings, exposed));
}

}  // namespace savegate::harness
