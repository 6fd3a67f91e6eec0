#include "harness/oracles/bitwise.h"

#include <fmt/format.h>

#include <set>

#include "harness/oracles/compare.h"
#include "harness/oracles/tampering.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

// Contract and derived state may be kept elsewhere than among the tensors, or be rebuilt.
bool must_be_stored(const Item& item) { return item.kind != "contract" && item.kind != "derived"; }

// Items that were saved and that the checkpoint does not show. A replica is stored once for all.
Lines unread(const SaveGroup& group, const Checkpoint& checkpoint) {
  Lines lines;
  std::set<std::pair<int, std::string>> by_rank;
  std::set<std::string> names;
  for (const auto& [rank, item] : checkpoint.items) {
    by_rank.emplace(rank, item.name);
    names.insert(item.name);
  }
  for (const SaveCall& call : group.calls) {
    for (const Item& item : call.begin->items) {
      if (!must_be_stored(item) || by_rank.contains({call.rank, item.name})) continue;
      if (item.scope == "replica" && names.contains(item.name)) continue;
      lines.push_back(fmt::format("{}: rank {} {} was saved and cannot be read", checkpoint.path,
                                  call.rank, quote(item)));
    }
  }
  return lines;
}

Lines judge_checkpoint(const View& view, const Life& life, const Checkpoint& checkpoint,
                       std::size_t& compared) {
  const auto writers = view.writers(checkpoint.step, life.record.ended_ns);
  if (writers.empty()) {
    return {fmt::format("after life {}: {} holds step {}, which nobody saved", life.record.number,
                        checkpoint.path, checkpoint.step)};
  }
  Lines differences;
  for (const SaveGroup* group : writers) {
    const Comparison comparison = compare_with(*group, checkpoint.items);
    differences = comparison.differences;
    const Lines missing = unread(*group, checkpoint);
    differences.insert(differences.end(), missing.begin(), missing.end());
    if (differences.empty()) {
      compared += comparison.compared;
      return {};
    }
  }
  for (std::string& line : differences) {
    line = fmt::format("after life {}: {}: {}", life.record.number, checkpoint.path, line);
  }
  return differences;
}

}  // namespace

reports::Verdict bitwise_read_back(const Evidence& evidence) {
  if (is_black_box(evidence)) return skip("F1", "no events say what was saved");
  const View view(evidence);
  std::size_t checkpoints = 0;
  std::size_t compared = 0;
  std::string reader_error = evidence.subject.reader.empty() ? "the subject has no reader" : "";
  Lines lines;
  for (std::size_t i = 0; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    const std::set<std::int64_t> damaged = damaged_steps(view, i);
    if (!life.record.reader_error.empty()) reader_error = life.record.reader_error;
    for (const Checkpoint& checkpoint : life.checkpoints) {
      if (!checkpoint.complete || !checkpoint.announced || damaged.contains(checkpoint.step)) {
        continue;
      }
      ++checkpoints;
      const Lines found = judge_checkpoint(view, life, checkpoint, compared);
      lines.insert(lines.end(), found.begin(), found.end());
    }
  }
  if (!lines.empty()) {
    return violated("F1", "a published checkpoint does not hold the bytes that were saved",
                    std::move(lines));
  }
  if (checkpoints == 0) {
    return skip("F1", reader_error.empty() ? "no complete published checkpoint was ever there"
                                           : reader_error);
  }
  if (compared == 0) {
    return invalid_evidence(
        "F1", fmt::format("{} published checkpoints, zero items compared", checkpoints));
  }
  return pass("F1", fmt::format("{} items of {} published checkpoints equal what was saved",
                                compared, checkpoints));
}

reports::Verdict per_rank_digests(const Evidence& evidence) {
  const View view(evidence);
  std::size_t restores = 0;
  std::size_t compared = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    std::set<std::int64_t> steps;
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      const Event* resumed = resumed_event(life, static_cast<int>(rank));
      if (resumed != nullptr && resumed->ok && resumed->step) steps.insert(*resumed->step);
    }
    for (const std::int64_t step : steps) {
      ++restores;
      const auto comparison =
          compare_with_writers(view, step, life.record.started_ns, restored_items(life, step));
      if (!comparison) {
        lines.push_back(fmt::format("life {} resumed at step {}, which no earlier life saved",
                                    life.record.number, step));
        continue;
      }
      compared += comparison->compared;
      for (const std::string& difference : comparison->differences) {
        lines.push_back(fmt::format("life {} restored {}", life.record.number, difference));
      }
    }
  }
  if (!lines.empty()) {
    return violated("F2", "a rank restored something else than it saved", std::move(lines));
  }
  if (restores == 0) return skip("F2", "no life restored a checkpoint");
  if (compared == 0) {
    return invalid_evidence("F2", fmt::format("{} restores, zero items compared", restores));
  }
  return pass("F2", fmt::format("{} restored items equal what was saved, in {} restores", compared,
                                restores));
}

}  // namespace savegate::harness
