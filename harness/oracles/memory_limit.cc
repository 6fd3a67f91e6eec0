#include "harness/oracles/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/death.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

// Without what the file system's daemon had allocated in the end: it gives none back before.
std::optional<std::uint64_t> peak_of_job(const Life& life) {
  if (!life.memory) return std::nullopt;
  for (const MemoryRecord& record : *life.memory) {
    if (record.phase != kJobEnd) continue;
    const auto peak = fact_of(record.facts, "cgroup_peak");
    if (!peak) return std::nullopt;
    return *peak - std::min(*peak, fact_of(record.facts, "daemon_anon").value_or(0));
  }
  return std::nullopt;
}

struct LimitFindings {
  std::vector<std::string> said;    // of what holds
  std::vector<std::string> deaths;  // of all lives
  std::vector<std::string> over;
  std::vector<std::string> misnamed;
  std::vector<std::string> unknown;
};

// Where a guard or the kernel enforces it, the peak is theirs and not the save path's.
void check_peak(const Life& life, LimitFindings& judged) {
  const MemoryLimit& limit = life.spec.memory;
  if (!limit.any() || limit.kills()) return;
  const auto peak = peak_of_job(life);
  if (!peak) {
    judged.unknown.push_back(
        fmt::format("life {}: the kernel tells of no peak of the job", life.record.number));
    return;
  }
  const std::string held = fmt::format(
      "life {}: the job held {} bytes at its peak, page cache of its files included and "
      "savegate's daemon not, of {} allowed ({} × {})",
      life.record.number, *peak, limit.allowed(), limit.bytes, limit.threshold);
  (*peak > limit.allowed() ? judged.over : judged.said).push_back(held);
}

void check_deaths(const Life& life, LimitFindings& judged) {
  const auto expected = life.spec.expect.death;
  bool as_expected = false;
  std::vector<std::string> others;
  for (const RankProcess& process : life.record.ranks) {
    const auto death = death_of(life, process);
    if (!death) continue;
    judged.deaths.push_back(
        fmt::format("life {} rank {}: {}", life.record.number, process.rank, death_name(*death)));
    as_expected = as_expected || death == expected;
    if (expected && *death != *expected) {
      others.push_back(fmt::format("{}: death: {}, expected was {}", quote(life, process),
                                   death_name(*death), death_name(*expected)));
    }
  }
  // Survivors may end as they like, by abort() say.
  if (!expected || as_expected) return;
  judged.misnamed.insert(judged.misnamed.end(), others.begin(), others.end());
  if (others.empty()) {
    judged.unknown.push_back(fmt::format("life {}: no rank died, expected was {}",
                                         life.record.number, death_name(*expected)));
  }
}

bool states_anything(const Evidence& evidence) {
  return std::any_of(evidence.lives.begin(), evidence.lives.end(), [](const Life& life) {
    return life.spec.memory.any() || life.spec.expect.death;
  });
}

}  // namespace

reports::Verdict within_memory_limit(const Evidence& evidence) {
  LimitFindings judged;
  for (const Life& life : evidence.lives) {
    check_peak(life, judged);
    check_deaths(life, judged);
  }
  if (!judged.deaths.empty()) {
    judged.said.push_back(fmt::format("death: {}", fmt::join(judged.deaths, ", ")));
  }
  const std::string said = fmt::format("{}", fmt::join(judged.said, "; "));
  if (!states_anything(evidence)) {
    return skip("M2", "no life has a limit of memory or says how its ranks die" +
                          (said.empty() ? "" : "; " + said));
  }
  if (!judged.over.empty()) {
    return violated("M2", "the job holds more than its limit × the guard's threshold",
                    std::move(judged.over));
  }
  if (!judged.misnamed.empty()) {
    return violated("M2", "a rank did not die as the scenario states", std::move(judged.misnamed));
  }
  if (!judged.unknown.empty()) {
    return invalid_evidence("M2", "what the job held, or how a rank dies, was not seen",
                            std::move(judged.unknown));
  }
  return pass("M2", said.empty() ? "no rank died under the limit" : said);
}

}  // namespace savegate::harness
