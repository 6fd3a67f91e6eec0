#include "harness/oracles/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "faults/status.h"
#include "harness/oracles/compare.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::TraceRecord;
using reports::Instant;
using reports::InstantKind;
using reports::SceneLife;
using reports::Slice;
using reports::SliceKind;

std::optional<SliceKind> kind_of(Op op) {
  switch (op) {
    case Op::kWrite:
    case Op::kFallocate:
    case Op::kCopyFileRange:
    case Op::kTruncate:
      return SliceKind::kWrite;
    case Op::kFsync:
    case Op::kFsyncdir:
      return SliceKind::kSync;
    case Op::kRename:
    case Op::kLink:
    case Op::kSymlink:
    case Op::kUnlink:
    case Op::kMkdir:
    case Op::kRmdir:
      return SliceKind::kName;
    case Op::kCreate:
      return SliceKind::kOpen;
    default:
      return std::nullopt;
  }
}

Slice operation(const TraceRecord& record, SliceKind kind) {
  Slice slice{.kind = kind,
              .rank = record.caller.rank,
              .process = record.caller.pid,
              .thread = record.caller.tid,
              .begin_ns = record.begin_ns,
              .end_ns = std::max(record.begin_ns, record.end_ns),
              .name = fmt::format("{} {}", faults::op_name(record.op), record.path),
              .detail = {},
              .failed = record.error != 0};
  if (!record.path2.empty()) slice.name += " to " + record.path2;
  if (kind == SliceKind::kWrite)
    slice.detail = fmt::format("offset {}, {} asked, {} written", record.offset, record.requested,
                               record.returned);
  if (record.error != 0)
    slice.detail += (slice.detail.empty() ? "" : ": ") + errno_name(record.error);
  return slice;
}

// Bytes that were written and that no sync of their file has covered since.
void add_unsynced(const Life& life, SceneLife& scene) {
  std::map<faults::FileId, std::uint64_t> files;
  std::uint64_t total = 0;
  for (const TraceRecord& record : life.trace.records) {
    const std::uint64_t before = total;
    std::uint64_t& file = files[record.file];
    if (record.op == Op::kWrite) {
      file += record.effective;
      total += record.effective;
    } else if (record.op == Op::kFsync && record.error == 0) {
      total -= std::exchange(file, 0);
    }
    if (total != before) scene.unsynced.push_back({record.end_ns, total});
  }
}

std::uint64_t end_of(const Life& life, int rank) {
  const RankProcess* process = process_of(life, rank);
  return process != nullptr && process->ended_ns != 0 ? process->ended_ns : life.record.ended_ns;
}

void add_saves(const View& view, const Life& life, SceneLife& scene) {
  for (const SaveGroup& group : view.groups()) {
    if (group.life != &life) continue;
    for (const SaveCall& call : group.calls) {
      const Event* last = call.last();
      Slice slice{.kind = SliceKind::kSave,
                  .rank = call.rank,
                  .begin_ns = call.begin->time_ns,
                  .end_ns = last != nullptr ? last->time_ns : end_of(life, call.rank),
                  .name = group.save ? fmt::format("save {}", *group.save)
                                     : fmt::format("save of step {}", group.step),
                  .detail = call.state == CallState::kSucceeded ? "succeeded"
                            : call.state == CallState::kFailed  ? "failed"
                                                                : "not finished",
                  .failed = call.state != CallState::kSucceeded};
      if (last != nullptr && last->error) slice.detail += ": " + last->error->text;
      if (call.state == CallState::kSucceeded)
        scene.times.push_back(
            {.rank = call.rank,
             .phase = slice.name,
             .seconds = static_cast<double>(slice.end_ns - slice.begin_ns) / 1e9});
      scene.slices.push_back(std::move(slice));
    }
  }
}

// A point of a save lasts until the next one, or until the save ends.
std::uint64_t end_of_phase(const Life& life, const std::vector<Event>& events, std::size_t begin,
                           int rank) {
  for (std::size_t i = begin + 1; i < events.size(); ++i) {
    switch (events[i].kind) {
      case EventKind::kPhase:
      case EventKind::kSaveBegin:
      case EventKind::kSaveEnd:
      case EventKind::kDurable:
      case EventKind::kResumed:
      case EventKind::kDone:
        return events[i].time_ns;
      default:
        break;
    }
  }
  return end_of(life, rank);
}

void add_events(const Life& life, int rank, SceneLife& scene) {
  const std::vector<Event>& events = life.events[static_cast<std::size_t>(rank)].events;
  std::map<std::pair<std::string, std::uint64_t>, const Event*> entered;
  std::string span = "restore";
  const Event* hello = nullptr;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.kind == EventKind::kHello && hello == nullptr) hello = &event;
    if (event.kind == EventKind::kSaveBegin && event.save)
      span = fmt::format("save {}", *event.save);
    if (event.kind == EventKind::kResumed && hello != nullptr && event.ok && event.step)
      scene.times.push_back(
          {rank, "restore", static_cast<double>(event.time_ns - hello->time_ns) / 1e9});
    if (event.kind == EventKind::kPhase) {
      const std::uint64_t end = std::max(event.time_ns, end_of_phase(life, events, i, rank));
      scene.slices.push_back({.kind = SliceKind::kPhase,
                              .rank = rank,
                              .begin_ns = event.time_ns,
                              .end_ns = end,
                              .name = event.name,
                              .detail = span});
      scene.times.push_back(
          {rank, span + "/" + event.name, static_cast<double>(end - event.time_ns) / 1e9});
    }
    if (event.kind == EventKind::kMemory)
      for (const auto& [name, bytes] : event.memory)
        scene.memory.push_back({rank, event.name, name, bytes});
    if (event.kind == EventKind::kCollectiveEnter) entered[{event.name, event.number}] = &event;
    if (event.kind != EventKind::kCollectiveExit) continue;
    const auto found = entered.find({event.name, event.number});
    if (found == entered.end()) continue;
    scene.slices.push_back({.kind = SliceKind::kCollective,
                            .rank = rank,
                            .begin_ns = found->second->time_ns,
                            .end_ns = event.time_ns,
                            .name = event.collective,
                            .detail = fmt::format("{}#{}", event.name, event.number)});
    entered.erase(found);
  }
  for (const auto& [key, event] : entered)
    scene.slices.push_back({.kind = SliceKind::kCollective,
                            .rank = rank,
                            .begin_ns = event->time_ns,
                            .end_ns = std::max(event->time_ns, end_of(life, rank)),
                            .name = event->collective,
                            .detail = fmt::format("{}#{}, never left", key.first, key.second),
                            .failed = true});
}

std::string line_of(const faults::FiredRecord& fired) {
  std::string line = fmt::format("rule \"{}\", hit {}: {} at {} {}", fired.rule, fired.hit,
                                 fired.action, faults::op_name(fired.op), fired.path);
  if (fired.requested != 0)
    line +=
        fmt::format(" offset {}, {} asked, {} done", fired.offset, fired.requested, fired.returned);
  if (fired.caller.rank >= 0) line += fmt::format(", rank {}", fired.caller.rank);
  if (!fired.phase.empty()) line += fmt::format(", in {}", fired.phase);
  if (fired.error != 0) line += ": " + errno_name(fired.error);
  return line;
}

void add_instants(const Life& life, SceneLife& scene) {
  for (const faults::FiredRecord& fired : life.fired) {
    const bool kill = fired.action.starts_with("kill");
    scene.fired.push_back(line_of(fired));
    scene.instants.push_back({.kind = kill ? InstantKind::kKill : InstantKind::kFault,
                              .rank = std::max(0, fired.caller.rank),
                              .process = fired.caller.pid,
                              .thread = fired.caller.tid,
                              .time_ns = fired.time_ns,
                              .name = (kill ? "kill: " : "fault: ") + fired.rule,
                              .detail = line_of(fired)});
  }
  for (const RankProcess& process : life.record.ranks) {
    if (process.ended_ns == 0) continue;
    const std::string how = process.signal
                                ? fmt::format("ended by signal {}", *process.signal)
                                : fmt::format("exit status {}", process.exit_status.value_or(-1));
    scene.instants.push_back(
        {.kind = ended_by_runner(process) ? InstantKind::kKill : InstantKind::kEnd,
         .rank = process.rank,
         .process = process.pid,
         .thread = process.pid,
         .time_ns = process.ended_ns,
         .name = how,
         .detail = process.ended_by.empty() ? how : how + " (" + process.ended_by + ")"});
  }
}

SceneLife scene_of(const View& view, const Life& life) {
  SceneLife scene{.number = life.record.number,
                  .begin_ns = life.record.started_ns,
                  .end_ns = life.record.ended_ns};
  add_saves(view, life, scene);
  for (std::size_t rank = 0; rank < life.events.size(); ++rank)
    add_events(life, static_cast<int>(rank), scene);
  for (const TraceRecord& record : life.trace.records) {
    const auto kind = kind_of(record.op);
    if (kind && record.caller.rank >= 0) scene.slices.push_back(operation(record, *kind));
  }
  add_unsynced(life, scene);
  add_instants(life, scene);
  std::stable_sort(scene.slices.begin(), scene.slices.end(), [](const Slice& a, const Slice& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  return scene;
}

// Where the block lies in the tensor: in bytes, where it is one run of them.
std::string range_of(const Item& item) {
  const auto product = [](const std::vector<std::uint64_t>& shape, std::size_t from) {
    return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(),
                           std::uint64_t{1}, std::multiplies<>());
  };
  bool one_run = item.offset.size() == item.global_shape.size() &&
                 item.local_shape.size() == item.global_shape.size();
  for (std::size_t i = 1; one_run && i < item.global_shape.size(); ++i)
    one_run = item.local_shape[i] == item.global_shape[i];
  const std::uint64_t local = product(item.local_shape, 0);
  if (!one_run || local == 0 || item.bytes == 0)
    return fmt::format("block [{}] at [{}] of [{}], {} bytes", fmt::join(item.local_shape, ","),
                       fmt::join(item.offset, ","), fmt::join(item.global_shape, ","), item.bytes);
  const std::uint64_t element = item.bytes / local;
  const std::uint64_t first =
      item.offset.empty() ? 0 : item.offset[0] * product(item.global_shape, 1) * element;
  return fmt::format("bytes {} to {} of {}", first, first + item.bytes - 1,
                     product(item.global_shape, 0) * element);
}

std::set<std::int64_t> resumed_steps(const Life& life) {
  std::set<std::int64_t> steps;
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    const Event* resumed = resumed_event(life, static_cast<int>(rank));
    if (resumed != nullptr && resumed->ok && resumed->step) steps.insert(*resumed->step);
  }
  return steps;
}

void add_differences(const View& view, const Life& life, reports::Scene& scene) {
  const std::set<std::int64_t> steps = resumed_steps(life);
  for (const std::int64_t step : steps) {
    const auto found = restored_items(life, step);
    const auto compared = compare_with_writers(view, step, life.record.started_ns, found);
    if (!compared || compared->equal()) continue;
    const SaveGroup* saved = view.writers(step, life.record.started_ns).back();
    for (const auto& [rank, item] : found) {
      const SaveCall* call = saved->call_of(rank);
      const Item* was = call == nullptr ? nullptr : find_item(call->begin->items, item);
      if (was != nullptr && was->digest == item.digest) continue;
      scene.differences.push_back(
          {.life = life.record.number,
           .rank = rank,
           .tensor = item.name,
           .range = range_of(item),
           .saved = was == nullptr ? "not among what was saved" : was->digest,
           .found = item.digest});
    }
  }
}

std::string first_subject_error(const Evidence& evidence) {
  for (const Life& life : evidence.lives) {
    const Event* first = nullptr;
    int of = 0;
    for (std::size_t rank = 0; rank < life.events.size(); ++rank)
      for (const Event& event : life.events[rank].events)
        if ((!event.ok || event.error) && (first == nullptr || event.time_ns < first->time_ns)) {
          first = &event;
          of = static_cast<int>(rank);
        }
    if (first != nullptr) return quote(life, of, *first);
    for (const RankProcess& process : life.record.ranks)
      if (process.exit_status.value_or(0) != 0) return quote(life, process);
  }
  return "";
}

std::string first_file_system_error(const Evidence& evidence) {
  for (const Life& life : evidence.lives) {
    for (const TraceRecord& record : life.trace.records)
      if (record.error != 0 && (record.faulted || kind_of(record.op))) return quote(life, record);
    if (!life.fired.empty())
      return fmt::format("life {} {}", life.record.number, line_of(life.fired.front()));
  }
  return "";
}

}  // namespace

reports::Scene scene_of(const Evidence& evidence) {
  const View view(evidence);
  reports::Scene scene;
  scene.world = evidence.scenario.world;
  for (const Life& life : evidence.lives) {
    scene.lives.push_back(scene_of(view, life));
    add_differences(view, life, scene);
  }
  scene.first_file_system_error = first_file_system_error(evidence);
  scene.first_subject_error = first_subject_error(evidence);
  return scene;
}

}  // namespace savegate::harness
