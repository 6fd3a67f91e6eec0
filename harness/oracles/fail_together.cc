#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/commit.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

bool says_failure(const Event& event) {
  return !event.ok && (event.kind == EventKind::kSaveEnd || event.kind == EventKind::kDurable ||
                       event.kind == EventKind::kResumed);
}

bool ended_badly(const RankProcess& process) {
  return process.signal.has_value() || process.exit_status.value_or(0) != 0;
}

// When the rank said that it failed, or was gone; UINT64_MAX if it is not known.
std::uint64_t left_at(const Life& life, const RankProcess& process) {
  std::uint64_t left = process.ended_ns == 0 ? UINT64_MAX : process.ended_ns;
  if (static_cast<std::size_t>(process.rank) >= life.events.size()) return left;
  for (const Event& event : life.events[static_cast<std::size_t>(process.rank)].events) {
    if (says_failure(event)) left = std::min(left, event.time_ns);
  }
  return left;
}

// The first failure that a rank could have told its peers of; 0 if there was none.
std::uint64_t first_failure(const Life& life) {
  std::uint64_t first = UINT64_MAX;
  for (const faults::FiredRecord& fired : life.fired) {
    if (fired.action.starts_with("kill")) first = std::min(first, fired.time_ns);
  }
  for (const RankProcess& process : life.record.ranks) {
    if (ended_by_runner(process)) continue;
    const std::uint64_t left = left_at(life, process);
    if (ended_badly(process) || left < process.ended_ns) first = std::min(first, left);
  }
  // A rank that the runner had to end may have said before that it failed.
  for (const EventLog& log : life.events) {
    for (const Event& event : log.events) {
      if (says_failure(event)) first = std::min(first, event.time_ns);
    }
  }
  return first == UINT64_MAX ? 0 : first;
}

bool fault_was_felt(const Life& life) {
  return std::any_of(life.fired.begin(), life.fired.end(), [](const faults::FiredRecord& fired) {
    return fired.error != 0 || fired.action.starts_with("hang") ||
           fired.action.starts_with("freeze until");
  });
}

void check_leaving(const Life& life, std::uint64_t first, Lines& lines) {
  const std::uint64_t within = life.spec.expect.within_ns;
  for (const RankProcess& process : life.record.ranks) {
    if (is_victim(life, process.rank) || ended_by_launcher(process)) continue;
    if (ended_by_runner(process)) {
      lines.push_back(fmt::format("{}: it did not leave by itself", quote(life, process)));
    } else if (process.signal) {
      lines.push_back(
          fmt::format("{}: a crash is no error that a peer can be told of", quote(life, process)));
    } else if (const std::uint64_t left = left_at(life, process);
               first != 0 && left != UINT64_MAX && left > first + within) {
      lines.push_back(fmt::format("{}: {:.1f} s after the first failure, {:.1f} s allowed",
                                  quote(life, process), static_cast<double>(left - first) / 1e9,
                                  static_cast<double>(within) / 1e9));
    }
  }
}

// A rank that took part, or should have, and did not succeed, by its own report or by its end.
bool failed_in(const SaveGroup& group, const RankProcess& process) {
  const SaveCall* call = group.call_of(process.rank);
  if (call == nullptr) return ended_badly(process);
  return call->state == CallState::kFailed ||
         (call->state == CallState::kUnfinished && ended_badly(process));
}

// After a kill, the save may have been complete all the same: then success is no lie.
bool is_complete_on_disk(const Life& life, std::int64_t step) {
  if (life.checkpoints.empty()) return !life.record.reader_error.empty();  // not obtained
  return std::any_of(
      life.checkpoints.begin(), life.checkpoints.end(),
      [&](const Checkpoint& checkpoint) { return checkpoint.step == step && checkpoint.complete; });
}

void check_reports(const SaveGroup& group, Lines& lines) {
  const Life& life = *group.life;
  Lines failures;
  for (const RankProcess& process : life.record.ranks) {
    if (!failed_in(group, process)) continue;
    const SaveCall* call = group.call_of(process.rank);
    failures.push_back(call != nullptr && call->state == CallState::kFailed
                           ? quote(life, process.rank, *call->last())
                           : quote(life, process));
  }
  if (failures.empty()) return;
  Lines successes;
  for (const SaveCall& call : group.calls) {
    if (call.state == CallState::kSucceeded) {
      successes.push_back(quote(life, call.rank, *call.last()));
    }
  }
  if (successes.empty()) return;
  if (has_victim(life) && is_complete_on_disk(life, group.step)) return;
  lines.insert(lines.end(), successes.begin(), successes.end());
  lines.insert(lines.end(), failures.begin(), failures.end());
}

// It died with bytes of its save unwritten.
bool was_killed_writing(const Life& life, int rank) {
  return std::any_of(life.fired.begin(), life.fired.end(), [&](const faults::FiredRecord& fired) {
    return fired.action.starts_with("kill") && fired.op == faults::Op::kWrite &&
           fired.caller.rank == rank;
  });
}

// The exit status is the whole word of a rank that writes no events: 0 is success.
void check_exits(const Life& life, Lines& lines) {
  Lines failures;
  Lines successes;
  for (const RankProcess& process : life.record.ranks) {
    if (process.exit_status == 0) {
      successes.push_back(quote(life, process));
    } else if (is_victim(life, process.rank)
                   ? was_killed_writing(life, process.rank)
                   : !ended_by_runner(process) && !ended_by_launcher(process)) {
      failures.push_back(quote(life, process));
    }
  }
  if (failures.empty() || successes.empty()) return;
  lines.insert(lines.end(), successes.begin(), successes.end());
  lines.insert(lines.end(), failures.begin(), failures.end());
}

}  // namespace

reports::Verdict fail_together(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines leaving;
  Lines reports;
  const bool silent = is_black_box(evidence);
  for (const Life& life : evidence.lives) {
    const std::uint64_t first = first_failure(life);
    const bool survivors =
        std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                    [&](const RankProcess& process) { return !is_victim(life, process.rank); });
    if (!survivors || (first == 0 && !fault_was_felt(life))) continue;
    if (first != 0 || !life.record.hung.empty()) ++judged;
    check_leaving(life, first, leaving);
    if (silent) check_exits(life, reports);
    for (const SaveGroup& group : view.groups()) {
      if (group.life == &life) check_reports(group, reports);
    }
  }
  if (!reports.empty()) {
    return violated("C1", "a rank calls a save a success that failed on another", reports);
  }
  if (!leaving.empty()) return violated("C1", leaving.front(), leaving);
  if (judged == 0) return skip("C1", "no rank failed or died while another one lived");
  return pass(
      "C1",
      fmt::format("in {} lives with a failure all other ranks left it in time, and {}", judged,
                  silent ? "none with exit status 0 after one that failed, or that was "
                           "killed while it wrote; more is not known: no events"
                         : "none called it a success"));
}

}  // namespace savegate::harness
