#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/compare.h"
#include "harness/oracles/restore.h"
#include "harness/oracles/tampering.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

std::uint64_t refused_at(const Life& life, int rank) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed != nullptr) return resumed->time_ns;
  const RankProcess* process = process_of(life, rank);
  return process == nullptr ? 0 : process->ended_ns;
}

// What a rank did other than refuse, in a life in which another one refused.
void check_rank(const Life& life, const RankProcess& process, std::uint64_t first, Lines& lines) {
  const int rank = process.rank;
  const Event* resumed = resumed_event(life, rank);
  if (!refused_load(life, rank)) {
    lines.push_back(resumed != nullptr ? quote(life, rank, *resumed) : quote(life, process));
  } else if (ended_by_runner(process)) {
    lines.push_back(quote(life, process));
  } else if (refused_at(life, rank) > first + life.spec.expect.within_ns) {
    lines.push_back(fmt::format("life {} rank {} refused {:.1f} s after the first",
                                life.record.number, rank,
                                static_cast<double>(refused_at(life, rank) - first) / 1e9));
  }
  for (const EventKind kind : {EventKind::kUpdate, EventKind::kSaveBegin}) {
    if (const Event* event = first_event(life, rank, kind)) {
      lines.push_back(quote(life, rank, *event));
    }
  }
}

bool anything_saved_before(const View& view, const Life& life) {
  return std::any_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& group) {
    return group.begin_ns < life.record.started_ns && view.succeeded(group);
  });
}

// The rank goes on from state that cannot be what was asked for.
void check_start(const View& view, const Life& life, int rank,
                 const std::vector<DamagedFile>& damaged, bool reads_damaged, Lines& lines) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr) {
    if (const Event* update = first_event(life, rank, EventKind::kUpdate)) {
      lines.push_back(quote(life, rank, *update));
    }
    return;
  }
  if (!resumed->ok) return;
  const bool used = std::any_of(damaged.begin(), damaged.end(), [&](const DamagedFile& file) {
    return file.role != faults::Role::kPointer && file.step && file.step == resumed->step;
  });
  if (!resumed->step || used) {
    lines.push_back(quote(life, rank, *resumed));
  } else if (reads_damaged) {
    const auto comparison = compare_with_writers(view, *resumed->step, life.record.started_ns,
                                                 restored_items(life, *resumed->step));
    if (comparison && !comparison->equal()) lines.push_back(comparison->differences.front());
  }
}

}  // namespace

reports::Verdict refuse_together(const Evidence& evidence) {
  if (is_black_box(evidence)) return skip("C5", "no events say whether a load was refused");
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    if (has_victim(life)) continue;  // a death takes the others with it: judged by C1
    std::uint64_t first = UINT64_MAX;
    for (const RankProcess& process : life.record.ranks) {
      if (refused_load(life, process.rank)) {
        first = std::min(first, refused_at(life, process.rank));
      }
    }
    if (first == UINT64_MAX) continue;
    ++judged;
    for (const RankProcess& process : life.record.ranks) check_rank(life, process, first, lines);
  }
  if (!lines.empty()) {
    return violated("C5",
                    "a load was refused by some ranks and not by all, in time and before any "
                    "step",
                    std::move(lines));
  }
  if (judged == 0) return skip("C5", "no load was refused");
  return pass("C5",
              fmt::format("{} loads refused by every rank, in time and before any step", judged));
}

reports::Verdict no_fresh_start(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 1; i < evidence.lives.size(); ++i) {
    const Life& life = evidence.lives[i];
    const auto damaged = damaged_files(view, i);
    const auto reads = damaged_reads(life);
    if ((damaged.empty() && reads.empty()) || !anything_saved_before(view, life)) continue;
    ++judged;
    Lines found;
    for (int rank = 0; rank < view.world(); ++rank) {
      check_start(view, life, rank, damaged, !reads.empty(), found);
    }
    if (found.empty()) continue;
    for (const DamagedFile& file : damaged) lines.push_back(file.how);
    lines.insert(lines.end(), reads.begin(), reads.end());
    lines.insert(lines.end(), found.begin(), found.end());
  }
  if (!lines.empty()) {
    return violated("C7", "a rank went on although a file it needs was damaged", std::move(lines));
  }
  if (judged == 0) return skip("C7", "no file of a saved checkpoint was damaged");
  return pass("C7",
              fmt::format("{} loads of damaged files: no rank used them or began afresh", judged));
}

}  // namespace savegate::harness
