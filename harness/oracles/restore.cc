#include "harness/oracles/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/oracles/black_box.h"
#include "harness/oracles/compare.h"
#include "harness/oracles/premise.h"
#include "harness/oracles/tampering.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;
using Step = std::optional<std::int64_t>;  // nothing: nothing was restored

std::string name_of(const Step& step) {
  return step ? fmt::format("step {}", *step) : std::string("none");
}

std::string names_of(const std::set<Step>& steps) {
  std::string names;
  for (const Step& step : steps) names += (names.empty() ? "" : " or ") + name_of(step);
  return names;
}

std::optional<int> number_in(std::string_view save) {
  constexpr std::string_view kPrefix = "save ";
  if (!save.starts_with(kPrefix)) return std::nullopt;
  int number = 0;
  const auto parsed =
      std::from_chars(save.data() + kPrefix.size(), save.data() + save.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

// The newest step that every rank had called saved before that moment.
Step newest_saved(const View& view, std::uint64_t before_ns) {
  Step newest;
  for (const SaveGroup& group : view.groups()) {
    if (group.begin_ns < before_ns && view.succeeded(group)) {
      newest = newest ? std::max(*newest, group.step) : group.step;
    }
  }
  return newest;
}

std::set<Step> stated_steps(const View& view, const Life& life) {
  std::set<Step> steps;
  for (const std::string& resumed : life.spec.expect.resumed) {
    if (resumed == "none") steps.insert(std::nullopt);
    if (const auto number = number_in(resumed)) {
      if (const auto step = view.step_of_save(*number)) steps.insert(*step);
    }
  }
  return steps;
}

// What the disk offered before this life: the newest announced complete checkpoint, or a newer
// complete one; without it, nothing.
std::set<Step> offered_steps(const View& view, std::size_t index) {
  const Evidence& evidence = view.evidence();
  const Life& before = evidence.lives[index - 1];
  const Life& life = evidence.lives[index];
  std::set<std::int64_t> damaged;
  for (const DamagedFile& file : damaged_files(view, index)) {
    if (file.role != faults::Role::kPointer && file.step) damaged.insert(*file.step);
  }
  if (!reader_looked(evidence, before)) {
    const Step newest = newest_saved(view, life.record.started_ns);
    if (newest && damaged.contains(*newest)) return {};
    return {newest};
  }
  Step announced;
  for (const Checkpoint& checkpoint : before.checkpoints) {
    if (!checkpoint.complete || !checkpoint.announced) continue;
    announced = announced ? std::max(*announced, checkpoint.step) : checkpoint.step;
  }
  std::set<Step> steps;
  for (const Checkpoint& checkpoint : before.checkpoints) {
    if (!checkpoint.complete || damaged.contains(checkpoint.step)) continue;
    const bool fallback = !damaged.empty() && evidence.subject.claims.fallback;
    if (!announced || checkpoint.step >= *announced || fallback) steps.insert(checkpoint.step);
  }
  if (!announced && !newest_saved(view, life.record.started_ns)) steps.insert(std::nullopt);
  return steps;
}

bool names_checkpoint(const View& view, const Evidence& evidence, std::size_t index,
                      const Event& resumed) {
  if (resumed.path.empty()) return false;
  if (const auto step = view.step_of(resumed.path)) return step == resumed.step;
  const auto& known = evidence.lives[index - 1].checkpoints;
  if (known.empty()) return true;
  return std::any_of(known.begin(), known.end(), [&](const Checkpoint& checkpoint) {
    return checkpoint.step == resumed.step &&
           last_component(checkpoint.path) == last_component(resumed.path);
  });
}

// The stated step presumes that the faults before it did what they were to do, and that nothing was
// saved after them: a subject that trains on after a failed save may have a newer one.
bool statement_holds(const View& view, std::size_t index) {
  const auto& lives = view.evidence().lives;
  if (lives[index].spec.expect.resumed.empty()) return false;
  if (!std::all_of(lives.begin(), lives.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                   [&](const Life& life) { return was_put_to_the_test(view, life); })) {
    return false;
  }
  if (view.evidence().subject.on_save_failure != "continue" || index == 0) return true;
  return std::none_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& failed) {
    return failed.life < &lives[index] && !view.succeeded(failed) &&
           newest_saved(view, lives[index].record.started_ns).value_or(0) > failed.step;
  });
}

void check_expected(const View& view, std::size_t index, std::size_t& judged, Lines& lines) {
  const Life& life = view.evidence().lives[index];
  const bool stated = statement_holds(view, index);
  if (index == 0 && !stated) return;
  const std::set<Step> expected = stated ? stated_steps(view, life) : offered_steps(view, index);
  bool any = false;
  for (int rank = 0; rank < view.world(); ++rank) {
    const Event* resumed = resumed_event(life, rank);
    if (resumed == nullptr || !resumed->ok) {
      const bool excused = is_victim(life, rank) || was_killed(life);
      if (stated && !excused) {
        lines.push_back(
            fmt::format("life {} rank {} says of no step that it resumed there, {} "
                        "expected",
                        life.record.number, rank, names_of(expected)));
      }
      continue;
    }
    any = true;
    if (!expected.contains(resumed->step)) {
      lines.push_back(fmt::format("{}: {} expected", quote(life, rank, *resumed),
                                  expected.empty() ? "a refusal" : names_of(expected)));
    } else if (resumed->step && index > 0 &&
               !names_checkpoint(view, view.evidence(), index, *resumed)) {
      lines.push_back(fmt::format("{}: its path names no checkpoint of that step",
                                  quote(life, rank, *resumed)));
    }
  }
  const bool refused_damage = !life.record.tampered.empty() && !any;
  if (any || refused_damage) ++judged;
}

// Judges the life after one in which a kill fired.
class AfterKill {
 public:
  AfterKill(const View& view, std::size_t killed)
      : view_(view),
        before_(view.evidence().lives[killed]),
        next_(view.evidence().lives[killed + 1]),
        saved_(newest_saved(view, next_.record.started_ns)) {}

  // Damage or changed inputs between the two lives: what is refused then says nothing of the kill.
  bool applies() const {
    return next_.record.tampered.empty() && damaged_reads(next_).empty() &&
           next_.spec.expect.outcome != Outcome::kRefuseTogether;
  }

  void run() {
    std::set<Step> steps;
    for (int rank = 0; rank < view_.world(); ++rank) check_rank(rank, steps);
    if (steps.size() > 1) {
      lines_.push_back(
          fmt::format("life {}: the ranks resumed at {}", next_.record.number, names_of(steps)));
    }
    for (const Step& step : steps) {
      if (step) check_items(*step);
    }
  }

  const Lines& lines() const { return lines_; }

 private:
  void check_rank(int rank, std::set<Step>& steps) {
    const Event* resumed = resumed_event(next_, rank);
    if (resumed == nullptr || !resumed->ok) {
      if (!saved_ || is_victim(next_, rank) || (resumed == nullptr && was_killed(next_))) return;
      const RankProcess* process = process_of(next_, rank);
      lines_.push_back(fmt::format(
          "step {} was saved, but {}", *saved_,
          resumed != nullptr   ? quote(next_, rank, *resumed)
          : process != nullptr ? quote(next_, *process)
                               : fmt::format("life {} had no rank {}", next_.record.number, rank)));
      return;
    }
    steps.insert(resumed->step);
    if (saved_ && (!resumed->step || *resumed->step < *saved_)) {
      lines_.push_back(
          fmt::format("step {} was saved, but {}", *saved_, quote(next_, rank, *resumed)));
    }
    if (resumed->step && reader_looked(view_.evidence(), before_) && !complete(*resumed->step)) {
      lines_.push_back(
          fmt::format("{}: that checkpoint is not complete on disk", quote(next_, rank, *resumed)));
    }
  }

  bool complete(std::int64_t step) const {
    return std::any_of(before_.checkpoints.begin(), before_.checkpoints.end(),
                       [&](const Checkpoint& checkpoint) {
                         return checkpoint.step == step && checkpoint.complete;
                       });
  }

  void check_items(std::int64_t step) {
    const auto comparison =
        compare_with_writers(view_, step, next_.record.started_ns, restored_items(next_, step));
    if (!comparison) {
      lines_.push_back(
          fmt::format("life {} resumed at step {}, which nobody saved", next_.record.number, step));
      return;
    }
    for (const std::string& difference : comparison->differences) {
      lines_.push_back(fmt::format("life {} restored what no single save held: {}",
                                   next_.record.number, difference));
    }
  }

  const View& view_;
  const Life& before_;
  const Life& next_;
  const Step saved_;
  Lines lines_;
};

}  // namespace

reports::Verdict expected_step(const Evidence& evidence) {
  if (is_black_box(evidence)) return skip("C8", "no events say what was resumed");
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) check_expected(view, i, judged, lines);
  if (!lines.empty()) {
    return violated("C8", "a life did not resume where it was expected to", std::move(lines));
  }
  if (judged == 0) return skip("C8", "no life was to resume, or to refuse");
  return pass("C8", fmt::format("{} lives resumed at the expected step, by their own account, or "
                                "refused",
                                judged));
}

reports::Verdict survives_kills(const Evidence& evidence) {
  if (is_black_box(evidence)) return resumes_after_kills(evidence);
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 0; i + 1 < evidence.lives.size(); ++i) {
    if (!was_killed(evidence.lives[i])) continue;
    AfterKill judge(view, i);
    if (!judge.applies()) continue;
    ++judged;
    judge.run();
    lines.insert(lines.end(), judge.lines().begin(), judge.lines().end());
  }
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("C10", first, std::move(lines));
  }
  if (judged == 0) return skip("C10", "no life was killed and followed by another");
  return pass("C10",
              fmt::format("after {} kills the next life restored one complete checkpoint", judged));
}

}  // namespace savegate::harness
