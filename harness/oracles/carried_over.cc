#include "harness/oracles/carried_over.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/tampering.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

bool has_saved_before(const View& view, const Life& life) {
  return std::any_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& group) {
    return group.life < &life && view.succeeded(group);
  });
}

// Nothing else stands between the life and what the one before it left: no damage, no kill while
// it loads, no change of the subject that it is to refuse.
bool loads_undisturbed(const View& view, std::size_t index) {
  const Life& life = view.evidence().lives[index];
  return has_saved_before(view, life) && life.record.tampered.empty() &&
         damaged_reads(life).empty() && !has_victim(life) && !life.record.daemon_died;
}

// It refused, and says why; else the quote of what it did instead.
std::string unclear_refusal(const Life& life, int rank) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed != nullptr && resumed->error && !resumed->error->text.empty()) return "";
  if (resumed != nullptr) return quote(life, rank, *resumed);
  const RankProcess* process = process_of(life, rank);
  if (process == nullptr) return "";
  const bool said = refused_load(life, rank) && process->exit_status && process->log_bytes > 0;
  return said ? "" : quote(life, *process);
}

// Restored from where it is, or refused with a reason: anything else is in the lines.
void check_restore(const Life& life, int rank, Lines& lines) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr || !resumed->ok) {
    const std::string unclear = unclear_refusal(life, rank);
    if (!unclear.empty()) lines.push_back(unclear);
  } else if (!resumed->step) {
    lines.push_back(fmt::format("{}, though checkpoints are there", quote(life, rank, *resumed)));
  }
}

std::int64_t last_step_of(const Life& life) {
  std::int64_t last = 0;
  for (const EventLog& log : life.events) {
    for (const Event& event : log.events) {
      if (event.kind == EventKind::kUpdate) last = std::max(last, event.step.value_or(0));
    }
  }
  return last;
}

bool lies_below(const std::string& path, const std::string& directory) {
  return path == directory || path.starts_with(directory + "/");
}

// A life that went on from an earlier step may cut the records of later ones off.
bool resumed_where_the_other_ended(const Life& before, const Life& life) {
  const Event* resumed = resumed_event(life, 0);
  return resumed != nullptr && resumed->ok && resumed->step &&
         *resumed->step >= last_step_of(before);
}

void check_formats(const Life& life, bool must_load, int world, Lines& lines) {
  for (int rank = 0; rank < world; ++rank) {
    const Event* resumed = resumed_event(life, rank);
    if (must_load && (resumed == nullptr || !resumed->ok)) {
      const RankProcess* process = process_of(life, rank);
      if (resumed != nullptr) lines.push_back(quote(life, rank, *resumed));
      if (resumed == nullptr && process != nullptr) lines.push_back(quote(life, *process));
      continue;
    }
    check_restore(life, rank, lines);
  }
}

}  // namespace

reports::Verdict moved_directory_works(const Evidence& evidence) {
  if (is_black_box(evidence)) return skip("R6", "not obtained: no events tell what was restored");
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 1; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    const std::string& before = evidence.lives[i - 1].record.directory;
    if (before.empty() || life.record.directory == before) continue;
    if (!life.spec.change.empty() || !loads_undisturbed(view, i)) continue;
    ++judged;
    Lines found;
    for (int rank = 0; rank < view.world(); ++rank) {
      check_restore(life, rank, found);
      const Event* resumed = resumed_event(life, rank);
      if (resumed != nullptr && resumed->ok && resumed->path.starts_with('/') &&
          !lies_below(resumed->path, life.record.directory)) {
        found.push_back(fmt::format("{}: that is not below {}", quote(life, rank, *resumed),
                                    life.record.directory));
      }
    }
    if (found.empty()) continue;
    lines.push_back(fmt::format("life {}: the checkpoints lay at {}, and lie at {}",
                                life.record.number, before, life.record.directory));
    lines.insert(lines.end(), found.begin(), found.end());
  }
  if (!lines.empty()) {
    return violated("R6", "checkpoints that lie at another path were neither restored nor refused",
                    std::move(lines));
  }
  if (judged == 0) return skip("R6", "no life found checkpoints at another path than before");
  return pass("R6",
              fmt::format("{} loads from another path, restored or refused with a reason", judged));
}

reports::Verdict records_survive(const Evidence& evidence) {
  if (evidence.subject.records.empty()) {
    return skip("R7", "subject.toml names no `records` beside the checkpoints");
  }
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 1; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    if (!resumed_where_the_other_ended(evidence.lives[i - 1], life)) continue;
    for (const RecordKept& record : life.record.records) {
      ++judged;
      if (record.digest == record.digest_after) continue;
      lines.push_back(fmt::format(
          "life {}: {} had {} bytes, and {}", life.record.number, record.path, record.bytes,
          record.digest_after.empty() ? "is shorter now, or gone"
                                      : "does not begin with them any more"));
    }
  }
  if (!lines.empty()) {
    return violated("R7", "records of earlier steps did not survive the resume", std::move(lines));
  }
  if (judged == 0) return skip("R7", "no record lay beside the checkpoints when a life resumed");
  return pass("R7", fmt::format("{} records kept, whatever was added to them", judged));
}

reports::Verdict older_formats_load(const Evidence& evidence) {
  const View view(evidence);
  std::size_t loaded = 0;
  std::size_t refused = 0;
  Lines lines;
  for (std::size_t i = 1; i < evidence.lives.size(); ++i) {
    const bool older_wrote = evidence.lives[i - 1].spec.change == kOlderCode;
    const bool older_reads = evidence.lives[i].spec.change == kOlderCode;
    if (older_wrote == older_reads || !loads_undisturbed(view, i)) continue;
    ++(older_wrote ? loaded : refused);
    check_formats(evidence.lives[i], older_wrote, view.world(), lines);
  }
  if (!lines.empty()) {
    return violated("F10", "what code of another version wrote was not loaded, or not refused",
                    std::move(lines));
  }
  if (loaded + refused == 0) return skip("F10", "no life loaded what another version had written");
  return pass("F10", fmt::format("{} loads of an older version's checkpoint, {} of a newer one's "
                                 "loaded or refused with a reason",
                                 loaded, refused));
}

}  // namespace savegate::harness
