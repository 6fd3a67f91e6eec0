#include "harness/oracles/tampering.h"

#include <fmt/format.h>

#include <map>

namespace savegate::harness {
namespace {

std::string described(const Life& life, const std::string& path) {
  for (const std::string& line : life.record.tampered) {
    if (line.find(path) != std::string::npos) return line;
  }
  return fmt::format("changed {}", path);
}

}  // namespace

std::vector<DamagedFile> damaged_files(const View& view, std::size_t life_index) {
  std::vector<DamagedFile> damaged;
  if (life_index == 0) return damaged;
  const Life& life = view.evidence().lives[life_index];
  if (life.record.tampered.empty()) return damaged;
  std::map<std::string, const FileEntry*> now;
  for (const FileEntry& entry : life.record.tree_before) now[entry.path] = &entry;
  for (const FileEntry& before : view.evidence().lives[life_index - 1].record.tree_after) {
    if (before.type == 'd') continue;
    const auto found = now.find(before.path);
    if (found != now.end() && found->second->digest == before.digest &&
        found->second->size == before.size) {
      continue;
    }
    damaged.push_back(
        {.path = before.path,
         .role = view.classify(before.path).role,
         .step = view.step_of(before.path),
         .how = fmt::format("life {}: {}", life.record.number, described(life, before.path))});
  }
  return damaged;
}

std::set<std::int64_t> damaged_steps(const View& view, std::size_t up_to_life) {
  std::set<std::int64_t> steps;
  for (std::size_t i = 0; i <= up_to_life; ++i) {
    for (const DamagedFile& file : damaged_files(view, i)) {
      if (file.step) steps.insert(*file.step);
    }
    for (const SaveGroup& group : view.groups()) {
      if (group.life == &view.evidence().lives[i] && view.succeeded(group)) steps.erase(group.step);
    }
  }
  return steps;
}

std::vector<std::string> damaged_reads(const Life& life) {
  std::vector<std::string> reads;
  for (const faults::FiredRecord& fired : life.fired) {
    const bool failed = fired.error != 0 && fired.error != EINTR;
    if (!failed && !fired.action.starts_with("corrupt")) continue;
    if (fired.op != faults::Op::kRead && fired.op != faults::Op::kOpen) continue;
    const Event* resumed = resumed_event(life, fired.caller.rank);
    if (resumed != nullptr && fired.time_ns > resumed->time_ns) continue;
    if (resumed == nullptr && first_event(life, fired.caller.rank, EventKind::kUpdate) != nullptr) {
      continue;
    }
    reads.push_back(fmt::format("life {} rank {} {} {} at {}: {}", life.record.number,
                                fired.caller.rank, faults::op_name(fired.op), fired.path,
                                fired.offset, fired.action));
  }
  return reads;
}

bool disk_lied(const Life& life) {
  return std::any_of(life.fired.begin(), life.fired.end(), [](const faults::FiredRecord& fired) {
    return fired.action.starts_with("lie") && faults::op_class(fired.op) == faults::OpClass::kSync;
  });
}

}  // namespace savegate::harness
