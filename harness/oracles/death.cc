#include "harness/oracles/death.h"

#include <signal.h>

#include <algorithm>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

// While the rank ran, in the cgroup that it was in.
bool kernel_killed_in_cgroup(const Life& life, int rank) {
  return life.memory &&
         std::any_of(life.memory->begin(), life.memory->end(), [&](const MemoryRecord& record) {
           return record.rank == rank && record.phase == kRankEnd &&
                  fact_of(record.facts, "cgroup_oom_kills").value_or(0) > 0;
         });
}

bool was_refused_for_good(const Life& life, int rank) {
  if (out_of_memory_report(life, rank) == nullptr) return false;
  const auto& events = life.events[static_cast<std::size_t>(rank)].events;
  return std::any_of(events.begin(), events.end(), [](const Event& event) {
    const auto found = event.memory.find("gpu_refusals");
    return found != event.memory.end() && found->second.value_or(0) > 0;
  });
}

}  // namespace

std::optional<Death> death_of(const Life& life, const RankProcess& process) {
  if (ended_by_runner(process) || ended_by_launcher(process)) return std::nullopt;
  if (process.ended_by.starts_with(kGuard)) return Death::kGuard;
  if (process.ended_by == "rule") return Death::kKilled;
  if (!process.signal) {
    const bool failed = process.exit_status.value_or(0) != 0;
    if (failed && was_refused_for_good(life, process.rank)) return Death::kGpuOutOfMemory;
    return std::nullopt;
  }
  if (*process.signal == SIGKILL && kernel_killed_in_cgroup(life, process.rank)) {
    return Death::kCgroupOom;
  }
  return Death::kCrash;
}

bool is_by_memory(std::optional<Death> death) {
  return death == Death::kGuard || death == Death::kCgroupOom;
}

bool died_by_memory(const Life& life) {
  return std::any_of(
      life.record.ranks.begin(), life.record.ranks.end(),
      [&](const RankProcess& process) { return is_by_memory(death_of(life, process)); });
}

const Event* out_of_memory_report(const Life& life, int rank) {
  if (static_cast<std::size_t>(rank) >= life.events.size()) return nullptr;
  for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
    if (!event.ok && event.error && event.error->errno_name == "ENOMEM" &&
        event.error->path.empty() && event.error->rank.value_or(rank) == rank) {
      return &event;
    }
  }
  return nullptr;
}

}  // namespace savegate::harness
