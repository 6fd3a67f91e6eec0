#include "harness/oracles.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/bitwise.h"
#include "harness/oracles/carried_over.h"
#include "harness/oracles/commit.h"
#include "harness/oracles/complete_set.h"
#include "harness/oracles/directories.h"
#include "harness/oracles/durability.h"
#include "harness/oracles/errors.h"
#include "harness/oracles/export.h"
#include "harness/oracles/gpu_memory.h"
#include "harness/oracles/honesty.h"
#include "harness/oracles/host_memory.h"
#include "harness/oracles/load_transient.h"
#include "harness/oracles/measurements.h"
#include "harness/oracles/memory_limit.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/publish_order.h"
#include "harness/oracles/restore.h"
#include "harness/oracles/resume.h"
#include "harness/oracles/shard_claims.h"
#include "harness/oracles/snapshot.h"
#include "harness/oracles/staging.h"
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

const std::vector<Oracle>& all_oracles() {
  static const std::vector<Oracle> kOracles = {
      {"H1", "Every configured fault fired, and every comparison that was to be made was made.",
       &executed_faults},
      {"H4", "The verdicts are bound to what was run.", &bound_to_what_was_run},
      {"H5", "The evidence is as it was collected.", &evidence_unaltered},
      {"H6", "What was not measured is said to be not obtained.", &measured_not_guessed},
      {"H7", "A digest is tied to name, dtype, shapes, offset, length, rank and step.",
       &identified_items},
      {"F1", "A fresh process reads from the published checkpoint what every rank held.",
       &bitwise_read_back},
      {"F2", "Each rank restores what it saved, item by item.", &per_rank_digests},
      {"F3", "All shards are there and whole, and a damaged file is found before it is used.",
       &complete_set},
      {"F4", "Short writes and reads are continued, EINTR is retried.", &short_io_continued},
      {"F5", "No two ranks hold different bytes under the same key and range.", &disjoint_slices},
      {"F6", "Temporary name, all bytes, fsync, rename, fsync of the directory, in this order.",
       &publish_order},
      {"F7", "A failed save names its first error: errno, rank, path, offset and bytes.",
       &first_error_kept},
      {"F8", "An error at fsync, close or rename fails the save.", &late_errors_honoured},
      {"F9", "What was announced as saved is there after a power loss at any later moment.",
       &survives_power_loss},
      {"F10", "What older code wrote is loaded; what is not known is refused with a reason.",
       &older_formats_load},
      {"C1",
       "When one rank fails, every rank leaves with an error in time and none reports success.",
       &fail_together},
      {"C2", "The marker is published last, the pointer after it.", &marker_last},
      {"C3", "A failed save does not advance the tracker.", &tracker_stays},
      {"C4", "The marker and the files of an old save go before a new one is written over them.",
       &uncommitted_first},
      {"C5", "A load is refused by all ranks together.", &refuse_together},
      {"C6", "The order of collectives is the same on all ranks.", &same_collectives},
      {"C7", "A load with a damaged file is an error, never a fresh start.", &no_fresh_start},
      {"C8", "The restored step is the expected one, by the program's own account.",
       &expected_step},
      {"C9", "Rotation deletes nothing that is in use, newest, or to be kept.", &rotation_spares},
      {"C10", "After a kill, fresh processes restore one complete checkpoint.", &survives_kills},
      {"C12", "Exit status 0 means that the life reached what it was asked for.", &real_success},
      {"R1", "Every rank of a resumed life is a new process.", &new_processes},
      {"R2", "All state for an exact resume is saved and restored; no sample is lost or repeated.",
       &whole_state},
      {"R3", "A changed run contract is refused by name.", &run_contract},
      {"R4", "The first export after a restore is that of the saving step.",
       &first_export_after_restore},
      {"R5", "An update after the resume changes parameters as the uninterrupted run would.",
       &real_update},
      {"R6", "Checkpoints that lie at another path are restored, or refused with a reason.",
       &moved_directory_works},
      {"R7", "Records beside the checkpoints survive a resume.", &records_survive},
      {"M1", "Host memory is recorded at the end of every phase, on every rank.",
       &host_memory_recorded},
      {"M2",
       "The job stays below its memory limit × the guard's threshold; a death is named rightly.",
       &within_memory_limit},
      {"M3", "Nothing that a process holds grows from save to save.", &nothing_grows},
      {"M4", "The staging memory of a save is given back after it.", &staging_given_back},
      {"M5", "A load takes no more host memory than its budget.", &load_stays_in_budget},
      {"G1", "GPU memory is recorded before and after every save, load and export.",
       &gpu_memory_recorded},
      {"G2", "After a load the allocator holds no more than it uses, nor does the first step.",
       &load_gives_cache_back},
      {"G3", "After a save another process can allocate what it could before.",
       &others_can_allocate},
      {"G4", "What ends as out of memory was refused for good, not granted at the second try.",
       &retry_is_no_end},
      {"G5", "An asynchronous save holds the state as of the call, whatever runs meanwhile.",
       &consistent_snapshot},
      {"expect", "Each life ends as the scenario states.", &expected_outcome},
  };
  return kOracles;
}

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
