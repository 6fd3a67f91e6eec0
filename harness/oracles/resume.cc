#include "harness/oracles/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/compare.h"
#include "harness/oracles/outcome.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

// The pid in the rank's hello is that of its process, or of a descendant that the file system saw.
bool belongs_to_rank(const Life& life, const RankProcess& process, std::int64_t pid) {
  if (pid == process.pid) return true;
  return std::any_of(life.trace.records.begin(), life.trace.records.end(),
                     [&](const faults::TraceRecord& record) {
                       return record.caller.rank == process.rank && record.caller.pid == pid;
                     });
}

// Contract items that a resumed rank holds and that are not those of the checkpoint.
void check_contract_items(const View& view, const Life& life, std::size_t& judged, Lines& lines) {
  for (int rank = 0; rank < view.world(); ++rank) {
    const Event* resumed = resumed_event(life, rank);
    if (resumed == nullptr || !resumed->ok || !resumed->step) continue;
    std::vector<std::pair<int, Item>> contract;
    for (const Item& item : resumed->items) {
      if (item.kind == "contract") contract.emplace_back(rank, item);
    }
    if (contract.empty()) continue;
    const auto comparison =
        compare_with_writers(view, *resumed->step, life.record.started_ns, contract);
    if (!comparison) continue;  // judged by F2
    judged += comparison->compared;
    for (const std::string& difference : comparison->differences) {
      lines.push_back(fmt::format("life {} resumed with {}", life.record.number, difference));
    }
  }
}

// A changed contract was to be refused, and the refusal to say what changed.
void check_refusal(const View& view, const Life& life, Lines& lines) {
  bool named = false;
  Lines said;
  for (int rank = 0; rank < view.world(); ++rank) {
    const Event* resumed = resumed_event(life, rank);
    if (resumed == nullptr) continue;
    said.push_back(quote(life, rank, *resumed));
    if (resumed->ok) {
      lines.push_back(
          fmt::format("{}: although `{}` changed", said.back(), life.spec.expect.names));
      return;
    }
    named = named || (resumed->error &&
                      resumed->error->text.find(life.spec.expect.names) != std::string::npos);
  }
  if (named) return;
  lines.push_back(
      fmt::format("life {}: no refusal names `{}`", life.record.number, life.spec.expect.names));
  lines.insert(lines.end(), said.begin(), said.end());
}

// Two saves of one step, in two lives or twice in one: a deterministic program holds the same
// bytes.
void compare_again(const SaveGroup& first, const SaveGroup& again, std::size_t& compared,
                   Lines& lines) {
  std::vector<std::pair<int, Item>> items;
  for (const SaveCall& call : again.calls) {
    if (first.call_of(call.rank) == nullptr) continue;  // it died before it began that save
    for (const Item& item : call.begin->items) items.emplace_back(call.rank, item);
  }
  const Comparison comparison = compare_with(first, items);
  compared += comparison.compared;
  for (const std::string& difference : comparison.differences) {
    lines.push_back(
        fmt::format("life {} at step {}: {}", again.life->record.number, again.step, difference));
  }
}

}  // namespace

reports::Verdict real_success(const Evidence& evidence) {
  if (is_black_box(evidence)) return skip("C12", "no events say what was reached");
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    for (const RankProcess& process : life.record.ranks) {
      if (process.exit_status != 0) continue;
      ++judged;
      if (first_event(life, process.rank, EventKind::kDone) == nullptr) {
        lines.push_back(fmt::format("{} without `done`", quote(life, process)));
      } else if (!reached_until(view, life, process.rank)) {
        lines.push_back(fmt::format("{} before \"{}\"", quote(life, process), life.spec.until));
      }
    }
  }
  if (!lines.empty()) {
    return violated("C12", "exit status 0 without the success that it stands for",
                    std::move(lines));
  }
  if (judged == 0) return skip("C12", "no rank left with exit status 0");
  return pass("C12", fmt::format("{} ranks left with exit status 0, each was done and had reached "
                                 "what was asked",
                                 judged));
}

reports::Verdict new_processes(const Evidence& evidence) {
  if (evidence.lives.size() < 2) return skip("R1", "only one life");
  Lines lines;
  std::map<std::pair<std::int64_t, std::uint64_t>, std::string> earlier;
  for (const Life& life : evidence.lives) {
    std::vector<std::pair<std::pair<std::int64_t, std::uint64_t>, std::string>> own;
    for (const RankProcess& process : life.record.ranks) {
      const std::pair identity(process.pid, process.start_ticks);
      const std::string line =
          fmt::format("{}, started at tick {}", quote(life, process), process.start_ticks);
      if (const auto known = earlier.find(identity); known != earlier.end()) {
        lines.push_back(fmt::format("{} is {}", line, known->second));
      }
      own.emplace_back(identity, line);
      const Event* hello = first_event(life, process.rank, EventKind::kHello);
      if (hello != nullptr && hello->pid != 0 && !belongs_to_rank(life, process, hello->pid)) {
        lines.push_back(
            fmt::format("{} says that its pid is {}", quote(life, process), hello->pid));
      }
    }
    earlier.insert(own.begin(), own.end());
  }
  if (!lines.empty()) {
    return violated("R1", "a resumed rank is not a new process", std::move(lines));
  }
  if (earlier.empty()) return invalid_evidence("R1", "no process was on record");
  return pass("R1", fmt::format("{} processes in {} lives, all different", earlier.size(),
                                evidence.lives.size()));
}

reports::Verdict run_contract(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    if (!life.spec.expect.names.empty()) {
      ++judged;
      check_refusal(view, life, lines);
    } else {
      check_contract_items(view, life, judged, lines);
    }
  }
  if (!lines.empty()) {
    return violated("R3", "a changed run contract was not refused by name", std::move(lines));
  }
  if (judged == 0) return skip("R3", "no contract was changed, and none was among the items");
  return pass("R3", fmt::format("{} contracts compared or refused by name", judged));
}

reports::Verdict real_update(const Evidence& evidence) {
  const View view(evidence);
  std::size_t updates = 0;
  std::size_t compared = 0;
  Lines unchanged;
  Lines different;
  for (const Life& life : evidence.lives) {
    bool changed = false;
    const Event* last = nullptr;
    int last_rank = 0;
    for (int rank = 0; rank < view.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed == nullptr || !resumed->ok || !resumed->step) continue;
      for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
        if (event.kind != EventKind::kUpdate || event.time_ns < resumed->time_ns) continue;
        ++updates;
        changed = changed || event.changed;
        last = &event;
        last_rank = rank;
      }
    }
    if (last != nullptr && !changed) {
      unchanged.push_back(fmt::format("{}: no update of this life changed a parameter",
                                      quote(life, last_rank, *last)));
    }
  }
  if (evidence.subject.claims.deterministic) {
    std::map<std::int64_t, const SaveGroup*> first;
    for (const SaveGroup& group : view.groups()) {
      const auto [known, is_first] = first.emplace(group.step, &group);
      if (!is_first) compare_again(*known->second, group, compared, different);
    }
  }
  if (!different.empty()) {
    return violated("R5", "a step that was reached again does not hold the same bytes",
                    std::move(different));
  }
  if (!unchanged.empty()) {
    return invalid_evidence("R5", "an update that changes nothing proves nothing",
                            std::move(unchanged));
  }
  if (updates == 0 && compared == 0) return skip("R5", "no update came after a resume");
  return pass("R5", fmt::format("{} updates after resumes changed parameters, {} items of steps "
                                "reached again are the same",
                                updates, compared));
}

}  // namespace savegate::harness
