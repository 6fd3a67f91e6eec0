#include "harness/oracles/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/oracles/premise.h"

namespace savegate::harness {
namespace {

constexpr std::uint64_t kHeldRankDiesWithin = 1'000'000'000;

std::optional<int> wanted_save(const std::string& until) {
  constexpr std::string_view kPrefix = "save ";
  if (!until.starts_with(kPrefix)) return std::nullopt;
  int number = 0;
  const char* end = until.data() + until.size();
  const auto parsed = std::from_chars(until.data() + kPrefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

bool left_cleanly(const View& view, const Life& life, const RankProcess& process) {
  return process.exit_status == 0 && (is_black_box(view.evidence()) ||
                                      first_event(life, process.rank, EventKind::kDone) != nullptr);
}

// By itself, with an exit status that says so. A signal is a crash, not an error.
bool left_with_error(const RankProcess& process) {
  return process.exit_status.value_or(0) != 0 || ended_by_launcher(process);
}

bool complete(const View& view, const Life& life) {
  return !life.record.ranks.empty() &&
         std::all_of(
             life.record.ranks.begin(), life.record.ranks.end(), [&](const RankProcess& process) {
               return left_cleanly(view, life, process) && reached_until(view, life, process.rank);
             });
}

// Every rank but the victims holds.
template <class Holds>
bool survivors_all(const Life& life, Holds holds) {
  return std::all_of(
      life.record.ranks.begin(), life.record.ranks.end(),
      [&](const RankProcess& process) { return is_victim(life, process.rank) || holds(process); });
}

bool any_survivor(const Life& life) {
  return std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                     [&](const RankProcess& process) { return !is_victim(life, process.rank); });
}

bool failed_together(const View& view, const Life& life) {
  if (!any_survivor(life)) return false;
  if (view.evidence().subject.on_save_failure == "exit" && !survivors_all(life, &left_with_error)) {
    return false;
  }
  if (is_black_box(view.evidence())) return survivors_all(life, &left_with_error);
  return std::any_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& group) {
    return group.life == &life && survivors_all(life, [&](const RankProcess& process) {
             const SaveCall* call = group.call_of(process.rank);
             return call != nullptr &&
                    (call->state == CallState::kFailed ||
                     (call->state == CallState::kUnfinished && left_with_error(process)));
           });
  });
}

bool refused_together(const View& view, const Life& life) {
  // All that a black box can do of a refusal is to leave with an error.
  if (is_black_box(view.evidence()))
    return any_survivor(life) && survivors_all(life, &left_with_error);
  return any_survivor(life) && survivors_all(life, [&](const RankProcess& process) {
           return refused_load(life, process.rank) && left_with_error(process);
         });
}

bool killed(const View& view, const Life& life) {
  return was_killed(life) && survivors_all(life, [&](const RankProcess& process) {
           return left_with_error(process) || left_cleanly(view, life, process);
         });
}

bool held(const Life& life) {
  bool any = false;
  for (const RankProcess& process : life.record.ranks) {
    if (!was_held(life, process.rank)) {
      if (!left_with_error(process)) return false;
      continue;
    }
    any = true;
    if (!ended_by_runner(process)) return false;
    if (process.kill_sent_ns != 0 &&
        process.ended_ns > process.kill_sent_ns + kHeldRankDiesWithin) {
      return false;
    }
  }
  return any;
}

bool hung(const Life& life) {
  return std::any_of(life.record.ranks.begin(), life.record.ranks.end(),
                     [&](const RankProcess& process) {
                       return ended_by_runner(process) && !is_victim(life, process.rank);
                     });
}

}  // namespace

bool reached_until(const View& view, const Life& life, int rank) {
  const auto wanted = wanted_save(life.spec.until);
  if (!wanted || is_black_box(view.evidence())) return true;
  for (const SaveGroup& group : view.groups()) {
    if (group.life != &life || !group.save || *group.save < *wanted) continue;
    const SaveCall* call = group.call_of(rank);
    if (call != nullptr && call->state == CallState::kSucceeded) return true;
  }
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr || !resumed->ok || !resumed->step) return false;
  return view.save_number(*resumed->step).value_or(0) >= *wanted;
}

bool shows(const View& view, const Life& life, Outcome expected) {
  if (expected == Outcome::kAny) return true;
  if (hung(life)) return false;
  switch (expected) {
    case Outcome::kComplete:
      return complete(view, life);
    case Outcome::kFailTogether:
      return failed_together(view, life);
    case Outcome::kRefuseTogether:
      return refused_together(view, life);
    case Outcome::kKilled:
      return killed(view, life);
    case Outcome::kHeld:
      return held(life);
    case Outcome::kAny:
      break;
  }
  return true;
}

std::string outcome_of(const View& view, const Life& life) {
  if (hung(life)) return "hung";
  for (const Outcome outcome : {Outcome::kHeld, Outcome::kKilled, Outcome::kRefuseTogether,
                                Outcome::kFailTogether, Outcome::kComplete}) {
    // A black box does not say that it refuses.
    if (outcome == Outcome::kRefuseTogether && is_black_box(view.evidence())) continue;
    if (shows(view, life, outcome)) return std::string(outcome_name(outcome));
  }
  return "mixed";
}

reports::Verdict expected_outcome(const Evidence& evidence) {
  const View view(evidence);
  for (const Life& life : evidence.lives) {
    const Outcome expected = life.spec.expect.outcome;
    if (shows(view, life, expected)) continue;
    std::vector<std::string> lines = bad_ends(life);
    for (const RankProcess& process : life.record.ranks) {
      const std::string line = quote(life, process);
      if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
    }
    if (!life.record.hung.empty()) lines.push_back(fmt::format("hung: {}", life.record.hung));
    for (const std::string& stray : life.record.stray) {
      lines.push_back(fmt::format("left behind: {}", stray));
    }
    const std::string seen = fmt::format("life {} was to be {}, and was {}", life.record.number,
                                         outcome_name(expected), outcome_of(view, life));
    // Without the fault nothing was asked of the subject.
    if (!was_put_to_the_test(view, life)) return invalid_evidence("expect", seen, lines);
    return violated("expect", seen, std::move(lines));
  }
  if (evidence.lives.empty()) return invalid_evidence("expect", "no life was run");
  return pass("expect", "each life ended as the scenario states");
}

}  // namespace savegate::harness
