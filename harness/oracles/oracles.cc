#include "harness/oracles.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/gpu_memory.h"
#include "harness/oracles/measurements.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

bool tells_of_collectives(const Evidence& evidence) {
  for (const Life& life : evidence.lives) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      if (first_event(life, static_cast<int>(rank), EventKind::kCollectiveEnter) != nullptr) {
        return true;
      }
    }
  }
  return false;
}

// The subject does not offer what the requirement is judged by, by its own subject.toml or by
// leaving out what the contract lets it leave out: no fault of the scenario.
bool is_beyond(const Evidence& evidence, const std::string& requirement) {
  const Subject& subject = evidence.subject;
  if (!subject.events && is_black_box(evidence)) return true;
  if (requirement == "F1") return subject.reader.empty();
  if (requirement == "G1" || requirement == "G2" || requirement == "G3" || requirement == "G4") {
    return !runs_on_gpu(evidence);
  }
  if (requirement == "R4") return !subject.claims.exports;
  if (requirement == "G5" || requirement == "M4") return !subject.claims.async;
  if (requirement == "F3") return subject.layout.shard.empty();
  if (requirement == "F5") return true;  // it slices nothing
  if (requirement == "F6" || requirement == "F9") return !subject.claims.durable;
  if (requirement == "C4") return subject.layout.marker.empty();
  if (requirement == "C9") return !subject.claims.rotation;
  if (requirement == "R7") return subject.records.empty();
  if (requirement == "C2") return subject.layout.marker.empty() && subject.layout.pointer.empty();
  if (requirement == "C6") return evidence.scenario.world < 2 || !tells_of_collectives(evidence);
  return false;
}

// A scenario that claims to show something must show it.
void hold_to_claims(const Evidence& evidence, std::vector<reports::Verdict>& verdicts) {
  for (const std::string& claimed : evidence.scenario.requirements) {
    const auto verdict = std::find_if(
        verdicts.begin(), verdicts.end(),
        [&](const reports::Verdict& candidate) { return candidate.requirement == claimed; });
    if (verdict == verdicts.end()) {
      verdicts.push_back(invalid_evidence(claimed, "claimed, but no oracle judges it"));
    } else if (verdict->outcome == reports::Outcome::kSkip && !is_beyond(evidence, claimed)) {
      verdict->outcome = reports::Outcome::kInvalid;
      verdict->summary =
          fmt::format("claimed, but there was nothing to judge: {}", verdict->summary);
    }
  }
}

bool lost_events(const Life& life) {
  return std::any_of(life.events.begin(), life.events.end(), [](const EventLog& log) {
    return !log.errors.empty() ||
           std::any_of(log.events.begin(), log.events.end(),
                       [](const Event& event) { return event.kind == EventKind::kHookError; });
  });
}

// Where the file system died under the subject, nothing that it did is its failure; where its
// instrument lost events, what it did not say may have been done.
void void_where_the_harness_failed(const Evidence& evidence,
                                   std::vector<reports::Verdict>& verdicts) {
  const auto in_a_life = [&](auto happened) {
    return std::any_of(evidence.lives.begin(), evidence.lives.end(), happened);
  };
  std::string why;
  if (in_a_life([](const Life& life) { return life.record.daemon_died; })) {
    why = "the file system died: ";
  } else if (in_a_life(lost_events)) {
    why = "the subject's instrument lost events: ";
  } else {
    return;
  }
  for (reports::Verdict& verdict : verdicts) {
    if (verdict.outcome != reports::Outcome::kFail || verdict.requirement.starts_with('H'))
      continue;
    verdict.outcome = reports::Outcome::kInvalid;
    verdict.summary = why + verdict.summary;
  }
}

}  // namespace

reports::ScenarioResult judge(const Evidence& evidence) {
  const Scenario& scenario = evidence.scenario;
  reports::ScenarioResult result;
  result.suite = scenario.suite;
  result.scenario = scenario.name;
  result.point = scenario.point;
  result.summary = scenario.summary;
  result.requirements = scenario.requirements;
  result.seed = scenario.seed;
  result.world = scenario.world;
  for (const Oracle& oracle : all_oracles()) result.verdicts.push_back(oracle.judge(evidence));
  hold_to_claims(evidence, result.verdicts);
  void_where_the_harness_failed(evidence, result.verdicts);
  result.outcome = reports::overall(result.verdicts);

  const View view(evidence);
  for (const Life& life : evidence.lives) {
    for (reports::FiredCount fired : life.record.rules) {
      fired.life = life.record.number;
      result.fired.push_back(std::move(fired));
    }
    result.lives.push_back(summarise(view, life));
  }
  if (!evidence.lives.empty()) {
    const std::uint64_t begin = evidence.lives.front().record.started_ns;
    const std::uint64_t end = evidence.lives.back().record.ended_ns;
    if (end > begin) result.seconds = static_cast<double>(end - begin) / 1e9;
  }
  return result;
}

}  // namespace savegate::harness
