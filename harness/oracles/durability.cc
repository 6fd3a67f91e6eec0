#include "harness/oracles/durability.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "harness/oracles/tampering.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

// At the end of such a life all that was not synced is gone, as rules with `lose` say.
bool power_went(const Life& life) {
  return std::any_of(life.spec.plan.rules.begin(), life.spec.plan.rules.end(),
                     [](const faults::Rule& rule) {
                       return std::holds_alternative<faults::LoseAction>(rule.action);
                     });
}

const SaveGroup* newest_announced(const View& view, const Life& life) {
  const SaveGroup* newest = nullptr;
  for (const SaveGroup& group : view.groups()) {
    if (group.begin_ns > life.record.ended_ns || !view.succeeded(group)) continue;
    if (newest == nullptr || group.step >= newest->step) newest = &group;
  }
  return newest;
}

// Where what it finds of a step is the scenario's own damage, the subject has not lost it.
class AfterPowerLoss {
 public:
  AfterPowerLoss(const View& view, const Life& life, const SaveGroup& saved,
                 const std::set<std::int64_t>& damaged)
      : view_(view), life_(life), saved_(saved), damaged_(damaged) {}

  Lines run() {
    const auto& found = life_.checkpoints;
    const bool whole = std::any_of(found.begin(), found.end(), [&](const Checkpoint& checkpoint) {
      return checkpoint.complete && checkpoint.step >= saved_.step;
    });
    if (!whole && !damaged_.contains(saved_.step)) {
      lines_.push_back(
          fmt::format("life {}: step {} was saved, and no complete checkpoint of it or "
                      "a later one is on disk",
                      life_.record.number, saved_.step));
    }
    for (const Checkpoint& checkpoint : found) {
      if (checkpoint.complete || damaged_.contains(checkpoint.step)) continue;
      check_incomplete(checkpoint, whole);
    }
    return std::move(lines_);
  }

 private:
  void check_incomplete(const Checkpoint& checkpoint, bool whole) {
    const Lines lost = lost_of(checkpoint);
    const bool vouched_for = checkpoint.announced || (has_marker(checkpoint) && !lost.empty());
    if (!vouched_for && (whole || checkpoint.step != saved_.step)) return;
    lines_.push_back(fmt::format(
        "life {}: {} is {}, and not complete: {}", life_.record.number, checkpoint.path,
        checkpoint.announced ? "announced" : "there with its marker", checkpoint.error));
    lines_.insert(lines_.end(), lost.begin(), lost.end());
  }

  // A marker that was itself lost, or emptied by it, vouches for nothing.
  bool has_marker(const Checkpoint& checkpoint) const {
    return std::any_of(life_.record.tree_after.begin(), life_.record.tree_after.end(),
                       [&](const FileEntry& entry) {
                         const faults::Classified name = view_.classify(entry.path);
                         return name.role == faults::Role::kMarker && !name.temporary &&
                                entry.size > 0 && view_.step_of(entry.path) == checkpoint.step &&
                                !was_lost(entry.path);
                       });
  }

  bool was_lost(const std::string& path) const {
    return std::any_of(life_.fired.begin(), life_.fired.end(),
                       [&](const faults::FiredRecord& fired) {
                         return fired.action == "lose" && name_at_the_end(fired) == path;
                       });
  }

  Lines lost_of(const Checkpoint& checkpoint) const {
    Lines lost;
    for (const faults::FiredRecord& fired : life_.fired) {
      if (fired.action != "lose") continue;
      const std::string path = name_at_the_end(fired).value_or("");
      if (view_.step_of(path) != checkpoint.step || view_.classify(path).temporary) continue;
      lost.push_back(fmt::format("life {}: rank {} never synced {}: {} bytes from {} on are lost",
                                 life_.record.number, fired.caller.rank, path, fired.requested,
                                 fired.offset));
    }
    return lost;
  }

  // The record names the file as it was called when it was first written. Nothing where the file
  // was deleted, or another one took its name: what it lost is not missed.
  std::optional<std::string> name_at_the_end(const faults::FiredRecord& fired) const {
    std::string path = fired.path;
    for (const faults::TraceRecord& record : life_.trace.records) {
      if (record.error != 0 || record.begin_seq < fired.seq) continue;
      if (record.op == faults::Op::kUnlink && record.path == path) return std::nullopt;
      if (record.op != faults::Op::kRename) continue;
      if (record.path2 == path && record.path != path) return std::nullopt;
      if (record.path == path) {
        path = record.path2;
      } else if (path.starts_with(record.path + "/")) {
        path.replace(0, record.path.size(), record.path2);
      }
    }
    return path;
  }

  const View& view_;
  const Life& life_;
  const SaveGroup& saved_;
  const std::set<std::int64_t>& damaged_;
  Lines lines_;
};

}  // namespace

reports::Verdict survives_power_loss(const Evidence& evidence) {
  if (!evidence.subject.claims.durable) {
    return skip("F9", "the subject does not claim that what it announces is durable");
  }
  const View view(evidence);
  std::size_t judged = 0;
  std::string why = "the power never went: no rule with `lose`";
  Lines lines;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    if (!power_went(life)) continue;
    const SaveGroup* saved = newest_announced(view, life);
    if (disk_lied(life)) {
      why = "the disk lied about its syncs";
    } else if (saved == nullptr) {
      why = "nothing was saved before the power went";
    } else if (!reader_looked(evidence, life)) {
      why = "not obtained: no reader looked at what was left";
    } else {
      const std::set<std::int64_t> damaged = damaged_steps(view, i);
      const Lines found = AfterPowerLoss(view, life, *saved, damaged).run();
      lines.insert(lines.end(), found.begin(), found.end());
      if (damaged.contains(saved->step)) {
        why = "what was saved last had been damaged before the power went";
      } else {
        ++judged;
      }
    }
  }
  if (!lines.empty()) {
    return violated("F9", "the power went, and an announced checkpoint went with it",
                    std::move(lines));
  }
  if (judged == 0) return skip("F9", why);
  return pass("F9",
              fmt::format("{} power losses, after which what was saved was complete", judged));
}

}  // namespace savegate::harness
