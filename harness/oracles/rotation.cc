#include <fmt/format.h>

#include <map>

#include "harness/oracles/directories.h"
#include "harness/oracles/name_replay.h"

namespace savegate::harness {
namespace {

using faults::Role;
using Lines = std::vector<std::string>;
using Step = std::optional<std::int64_t>;

class LifeRotation {
 public:
  LifeRotation(const View& view, const Life& life) : view_(view), life_(life) {
    if (const Event* resumed = resumed_event(life, 0); resumed != nullptr && resumed->ok) {
      pointed_at_ = resumed->step;
    }
  }

  void see(const NameChange& change, const std::set<std::string>& names) {
    const faults::Classified name = view_.classify(change.path);
    if (name.temporary || name.role == Role::kNone) return;
    if (name.role == Role::kPointer) {
      if (change.event == NameEvent::kGoes) return;
      pointed_at_ = step_in_save(change.record->begin_ns);
      moved_by_no_save_ = !pointed_at_;
      return;
    }
    const Step step = view_.step_of(change.path);
    if (!step) return;
    if (change.event != NameEvent::kGoes) {
      appeared_[change.path] = change.record->begin_ns;
      given_up_.erase(change.path);
    } else if (const auto* save = view_.group_at(life_, change.record->begin_ns, step)) {
      check_being_written(change, *save);
    } else if (steps_.insert(*step).second) {
      check_rotated(change, *step, names);
    }
  }

  const std::set<std::int64_t>& steps() const { return steps_; }
  Lines lines() const {
    Lines all = lines_;
    for (const auto& [path, line] : given_up_) all.push_back(line);
    return all;
  }

 private:
  // Whose save moved the pointer: where several are under way, the newest.
  Step step_in_save(std::uint64_t time_ns) const {
    Step newest;
    for (const SaveGroup& group : view_.groups()) {
      if (group.life != &life_ || time_ns < group.begin_ns || time_ns > group.end_ns) continue;
      newest = newest ? std::max(*newest, group.step) : group.step;
    }
    return newest;
  }

  // By their markers; where there are none, by what the saves said.
  std::set<std::int64_t> complete_steps(std::uint64_t time_ns,
                                        const std::set<std::string>& names) const {
    std::set<std::int64_t> steps;
    if (view_.evidence().subject.layout.marker.empty()) {
      for (const SaveGroup& group : view_.groups()) {
        if (group.end_ns < time_ns && view_.succeeded(group)) steps.insert(group.step);
      }
    }
    for (const std::string& name : names) {
      const Step step = view_.step_of(name);
      if (step && view_.classify(name).role == Role::kMarker) steps.insert(*step);
    }
    return steps;
  }

  void check_rotated(const NameChange& change, std::int64_t step,
                     const std::set<std::string>& names) {
    const std::uint64_t at = change.record->begin_ns;
    const std::set<std::int64_t> complete = complete_steps(at, names);
    const bool has_pointer = !view_.evidence().subject.layout.pointer.empty();
    if (has_pointer && pointed_at_ == step) add(change, "which the pointer names");
    // Before the pointer is first there, nothing is announced.
    if ((!has_pointer || moved_by_no_save_) && !complete.empty() && *complete.rbegin() == step) {
      add(change, "which is the newest complete one");
    }
    const std::int64_t keep_every = view_.evidence().subject.keep_every;
    if (keep_every > 0 && step % keep_every == 0 && complete.contains(step)) {
      add(change, fmt::format("and every {}th step is to be kept", keep_every));
    }
    for (int rank = 0; rank < view_.world(); ++rank) {
      const Event* resumed = resumed_event(life_, rank);
      if (resumed != nullptr && resumed->step == step && resumed->time_ns > at) {
        add(change, fmt::format("which rank {} was reading", rank));
      }
    }
  }

  // What the save itself has put there; what lay there before it is C4's.
  void check_being_written(const NameChange& change, const SaveGroup& save) {
    const auto appeared = appeared_.find(change.path);
    if (appeared == appeared_.end() || appeared->second < save.begin_ns) return;
    if (view_.succeeded(save)) given_up_[change.path] = line_of(change, "which was being written");
  }

  std::string line_of(const NameChange& change, const std::string& why) const {
    return fmt::format("{}: {} is deleted, {}", quote(life_, *change.record),
                       parent_of(change.path), why);
  }
  void add(const NameChange& change, const std::string& why) {
    lines_.push_back(line_of(change, why));
  }

  const View& view_;
  const Life& life_;
  Step pointed_at_;
  bool moved_by_no_save_ = false;  // the pointer: then it is taken to name the newest complete one
  std::map<std::string, std::uint64_t> appeared_;
  std::map<std::string, std::string> given_up_;  // paths that a save deleted and did not make again
  std::set<std::int64_t> steps_;                 // deleted outside of their own saves
  Lines lines_;
};

}  // namespace

reports::Verdict rotation_spares(const Evidence& evidence) {
  if (is_black_box(evidence)) {
    return skip("C9", "not obtained: without events a rotation is not told from a new save");
  }
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    LifeRotation rotation(view, life);
    replay_names(life, [&](const NameChange& change, const std::set<std::string>& names) {
      rotation.see(change, names);
    });
    judged += rotation.steps().size();
    for (std::string& line : rotation.lines()) lines.push_back(std::move(line));
  }
  if (!lines.empty()) {
    return violated("C9", "a checkpoint was deleted that was to stay", std::move(lines));
  }
  if (judged == 0) return skip("C9", "no file of a checkpoint was deleted");
  return pass("C9",
              fmt::format("{} checkpoints deleted, none of them in use or to be kept", judged));
}

}  // namespace savegate::harness
