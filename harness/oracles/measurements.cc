#include "harness/oracles/measurements.h"

#include <algorithm>

#include "harness/oracles/outcome.h"

namespace savegate::harness {
namespace {

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e9 : 0;
}

// The last save that succeeded in the life.
const SaveGroup* last_save(const View& view, const Life& life) {
  const SaveGroup* last = nullptr;
  for (const SaveGroup& group : view.groups()) {
    if (group.life == &life && view.succeeded(group)) last = &group;
  }
  return last;
}

reports::Measurement slowest_save(const SaveGroup& group) {
  double slowest = 0;
  for (const SaveCall& call : group.calls) {
    slowest = std::max(slowest, seconds(call.begin->time_ns, call.last()->time_ns));
  }
  return slowest;
}

reports::Measurement slowest_restore(const View& view, const Life& life) {
  reports::Measurement slowest;
  for (int rank = 0; rank < view.world(); ++rank) {
    const Event* hello = first_event(life, rank, EventKind::kHello);
    const Event* resumed = resumed_event(life, rank);
    if (hello == nullptr || resumed == nullptr || !resumed->ok || !resumed->step) continue;
    slowest = std::max(slowest.value_or(0), seconds(hello->time_ns, resumed->time_ns));
  }
  return slowest;
}

}  // namespace

reports::LifeSummary summarise(const View& view, const Life& life) {
  reports::LifeSummary summary;
  summary.number = life.record.number;
  summary.until = life.spec.until;
  summary.outcome = outcome_of(view, life);
  if (life.record.ended_ns > life.record.started_ns) {
    summary.seconds = seconds(life.record.started_ns, life.record.ended_ns);
  }
  summary.restore_seconds = slowest_restore(view, life);
  const SaveGroup* save = last_save(view, life);
  if (save == nullptr) return summary;
  summary.save_seconds = slowest_save(*save);
  double bytes = 0;
  double files = 0;
  for (const FileEntry& entry : life.record.tree_after) {
    if (entry.type != 'f' || view.step_of(entry.path) != save->step) continue;
    bytes += static_cast<double>(entry.size);
    ++files;
  }
  if (files > 0) {
    summary.bytes_saved = bytes;
    summary.files = files;
  }
  return summary;
}

}  // namespace savegate::harness
