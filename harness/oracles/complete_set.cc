#include "harness/oracles/complete_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/black_box.h"
#include "harness/oracles/compare.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/tampering.h"

namespace savegate::harness {
namespace {

using faults::Role;
using Lines = std::vector<std::string>;

// The newest save that succeeded in the life: its files are still there when the life ends.
const SaveGroup* newest_success(const View& view, const Life& life) {
  const SaveGroup* newest = nullptr;
  for (const SaveGroup& group : view.groups()) {
    if (group.life == &life && view.succeeded(group)) newest = &group;
  }
  return newest;
}

void check_shards(const View& view, const SaveGroup& group, Lines& lines) {
  const Life& life = *group.life;
  std::size_t shards = 0;
  for (const FileEntry& entry : life.record.tree_after) {
    const auto name = view.classify(entry.path);
    if (entry.type != 'f' || name.role != Role::kShard || name.temporary ||
        view.step_of(entry.path) != group.step) {
      continue;
    }
    ++shards;
    if (entry.size == 0) {
      lines.push_back(fmt::format("after life {}: {} is empty", life.record.number, entry.path));
    }
  }
  const std::size_t expected = view.evidence().subject.shards_in(view.world());
  if (shards < expected) {
    lines.push_back(fmt::format("after life {}: step {} has {} of {} shards", life.record.number,
                                group.step, shards, expected));
  }
}

// The reader finds complete what every rank called saved, or a newer one that took its place.
void check_reader(const View& view, const SaveGroup& group, Lines& lines) {
  const Life& life = *group.life;
  if (view.evidence().subject.reader.empty() || !life.record.reader_error.empty()) return;
  std::string found = "is not there";
  for (const Checkpoint& checkpoint : life.checkpoints) {
    if (checkpoint.complete && checkpoint.step >= group.step) return;
    if (checkpoint.step == group.step) found = "is not complete: " + checkpoint.error;
  }
  lines.push_back(fmt::format("after life {}: step {} was saved, and for the reader {}",
                              life.record.number, group.step, found));
}

// A rotation that was killed may leave a part.
bool was_deleted_from(const View& view, const SaveGroup& group) {
  const auto& records = group.life->trace.records;
  return std::any_of(records.begin(), records.end(), [&](const faults::TraceRecord& record) {
    const bool removes = record.op == faults::Op::kUnlink || record.op == faults::Op::kRename;
    return removes && record.error == 0 && record.begin_ns > group.end_ns &&
           view.step_of(record.path) == group.step && !view.classify(record.path).temporary;
  });
}

// What was saved before the newest is there whole too, unless it was deleted or written anew.
void check_earlier(const View& view, const SaveGroup& newest, Lines& lines) {
  const Life& life = *newest.life;
  if (!reader_looked(view.evidence(), life) || disk_lied(life)) return;
  for (const SaveGroup& group : view.groups()) {
    if (group.life != &life || group.step == newest.step || !view.succeeded(group)) continue;
    if (view.writers(group.step, life.record.ended_ns).size() > 1) continue;
    for (const Checkpoint& checkpoint : life.checkpoints) {
      if (checkpoint.step != group.step || checkpoint.complete) continue;
      if (was_deleted_from(view, group)) continue;
      lines.push_back(
          fmt::format("after life {}: step {} was saved, and for the reader is not "
                      "complete: {}",
                      life.record.number, group.step, checkpoint.error));
    }
  }
}

void check_leftovers(const View& view, const SaveGroup& group, Lines& lines) {
  const Life& life = *group.life;
  if (!shows(view, life, Outcome::kComplete)) return;
  std::set<std::string> earlier;  // debris of a life that died is judged where it was made
  for (const FileEntry& entry : life.record.tree_before) earlier.insert(entry.path);
  for (const FileEntry& entry : life.record.tree_after) {
    if (entry.type == 'd' || earlier.contains(entry.path)) continue;
    const auto name = view.classify(entry.path);
    if (!name.temporary || name.role == Role::kNone) continue;
    const auto step = view.step_of(name.final_path);
    if (step && *step != group.step) continue;
    lines.push_back(
        fmt::format("after life {}: {} was left behind", life.record.number, entry.path));
  }
}

// A restore from files that were damaged.
void check_damage(const View& view, std::size_t index, std::size_t& judged, Lines& lines) {
  const Life& life = view.evidence().lives[index];
  const auto damaged = damaged_files(view, index);
  const auto reads = damaged_reads(life);
  for (const DamagedFile& file : damaged) judged += file.role == Role::kPointer ? 0 : 1;
  judged += reads.size();
  if (damaged.empty() && reads.empty()) return;
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    const Event* resumed = resumed_event(life, static_cast<int>(rank));
    if (resumed == nullptr || !resumed->ok || !resumed->step) continue;
    for (const DamagedFile& file : damaged) {
      if (file.role == Role::kPointer || file.role == Role::kNone || file.step != resumed->step) {
        continue;
      }
      lines.push_back(file.how);
      lines.push_back(quote(life, static_cast<int>(rank), *resumed));
    }
    if (reads.empty()) continue;
    const auto comparison = compare_with_writers(view, *resumed->step, life.record.started_ns,
                                                 restored_items(life, *resumed->step));
    if (comparison && comparison->equal()) continue;  // it read again
    lines.insert(lines.end(), reads.begin(), reads.end());
    lines.push_back(quote(life, static_cast<int>(rank), *resumed));
  }
}

}  // namespace

reports::Verdict complete_set(const Evidence& evidence) {
  if (is_black_box(evidence)) return leaves_whole_files(evidence);
  const View view(evidence);
  std::size_t judged = 0;
  Lines damage;
  Lines lines;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    check_damage(view, i, judged, damage);
    if (!life.record.tampered.empty() && i > 0 && damaged_files(view, i).empty()) {
      return invalid_evidence("F3", "tampering changed no file", life.record.tampered);
    }
    const SaveGroup* group = newest_success(view, life);
    if (group != nullptr) {
      check_reader(view, *group, lines);
      check_earlier(view, *group, lines);
    }
    if (group == nullptr || evidence.subject.layout.shard.empty() ||
        evidence.subject.step_pattern.empty()) {
      continue;
    }
    ++judged;
    check_shards(view, *group, lines);
    check_leftovers(view, *group, lines);
  }
  if (!damage.empty()) {
    return violated("F3", "a damaged file was used to resume from", std::move(damage));
  }
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("F3", first, std::move(lines));
  }
  if (judged == 0) {
    return skip("F3", evidence.subject.layout.shard.empty()
                          ? "the layout names no shards"
                          : "no save succeeded and nothing was damaged");
  }
  return pass("F3",
              fmt::format("{} sets of files complete, or their damage found in time", judged));
}

}  // namespace savegate::harness
