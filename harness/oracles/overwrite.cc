#include <fmt/format.h>

#include <map>

#include "harness/oracles/directories.h"
#include "harness/oracles/name_replay.h"
#include "harness/oracles/tampering.h"

namespace savegate::harness {
namespace {

using faults::Role;
using Lines = std::vector<std::string>;

// One save of a step, over what an earlier one left in its directory.
class Overwrite {
 public:
  Overwrite(const View& view, std::int64_t step, const std::set<std::string>& names) : view_(view) {
    for (const std::string& name : names) {
      if (view.step_of(name) == step && !view.classify(name).temporary) {
        old_[name] = view.classify(name).role;
      }
    }
    std::erase_if(old_, [](const auto& entry) { return entry.second == Role::kNone; });
    found_any_ = !old_.empty();
  }

  bool found_any() const { return found_any_; }

  void see(const Life& life, const NameChange& change, Lines& lines) {
    const faults::Classified name = view_.classify(change.path);
    if (name.temporary || name.role == Role::kNone) return;
    const bool removes = change.event == NameEvent::kGoes;
    if (name.role == Role::kMarker) {
      if (!removes && change.event != NameEvent::kEmptied) check_left_beside(life, change, lines);
    } else if (const std::string* marker = old_marker(change); marker != nullptr && !told_) {
      told_ = true;
      lines.push_back(fmt::format("{}, while the marker of the save before, {}, is still there",
                                  quote(life, *change.record), *marker));
    }
    old_.erase(change.path);
  }

 private:
  // That vouches for the file: it lies in its directory or above, and does not move with it.
  const std::string* old_marker(const NameChange& change) const {
    const bool moves = change.record->op == faults::Op::kRename;
    for (const auto& [name, role] : old_) {
      if (role != Role::kMarker || !lies_beside(name, change.path)) continue;
      if (moves && name.starts_with(change.record->path + "/")) continue;
      return &name;
    }
    return nullptr;
  }

  static bool lies_beside(const std::string& marker, const std::string& path) {
    const std::string directory = parent_of(marker);
    return directory.empty() || path.starts_with(directory + "/");
  }

  // The new marker is there: what is still old is taken for a part of the new checkpoint.
  void check_left_beside(const Life& life, const NameChange& change, Lines& lines) {
    for (const auto& [name, role] : old_) {
      if (role == Role::kMarker || !lies_beside(change.path, name)) continue;
      lines.push_back(fmt::format("{}: {} is still that of the save before",
                                  quote(life, *change.record), name));
    }
    old_.clear();
  }

  const View& view_;
  std::map<std::string, Role> old_;
  bool found_any_ = false;
  bool told_ = false;
};

// What is damaged there is no checkpoint to lose any more, nor does it say what its step is.
std::set<std::int64_t> damaged_before(const View& view, std::size_t life) {
  auto steps = life == 0 ? std::set<std::int64_t>{} : damaged_steps(view, life - 1);
  for (const DamagedFile& file : damaged_files(view, life)) {
    if (file.step) steps.insert(*file.step);
  }
  return steps;
}

}  // namespace

reports::Verdict uncommitted_first(const Evidence& evidence) {
  if (evidence.subject.layout.marker.empty()) return skip("C4", "the layout names no marker");
  const View view(evidence);
  std::map<const SaveGroup*, Overwrite> saves;
  Lines lines;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    const std::set<std::int64_t> damaged = damaged_before(view, i);
    replay_names(life, [&](const NameChange& change, const std::set<std::string>& names) {
      const auto step = view.step_of(change.path);
      if (!step || damaged.contains(*step)) return;
      const SaveGroup* group = view.group_at(life, change.record->begin_ns, step);
      if (group == nullptr) return;
      auto known = saves.find(group);
      if (known == saves.end()) {
        known = saves.emplace(group, Overwrite(view, *step, names)).first;
      }
      known->second.see(life, change, lines);
    });
  }
  std::size_t judged = 0;
  for (const auto& [group, save] : saves) judged += save.found_any() ? 1 : 0;
  if (!lines.empty()) {
    return violated("C4", "a step was saved over a checkpoint that still counted as complete",
                    std::move(lines));
  }
  if (judged == 0) return skip("C4", "no step was saved where files of an earlier save lay");
  return pass("C4", fmt::format("{} saves over an earlier one took its marker away first", judged));
}

}  // namespace savegate::harness
