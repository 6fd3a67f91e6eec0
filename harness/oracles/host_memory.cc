#include "harness/oracles/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "harness/oracles/trend.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;
using Point = std::pair<double, double>;

// The phase that the event ends, "" for none: as the sampler names it.
std::string phase_of(const Event& event) {
  switch (event.kind) {
    case EventKind::kResumed:
      return "load";
    case EventKind::kUpdate:
      return "update";
    case EventKind::kExport:
      return "export";
    case EventKind::kSaveBegin:
      return "before save";
    case EventKind::kDurable:
      return "save";
    default:
      return "";
  }
}

struct Recorded {
  std::size_t phases = 0;
  std::size_t measured = 0;
  Lines missing;
};

void check_rank(const Life& life, int rank, Recorded& recorded) {
  std::vector<const MemoryRecord*> records;
  for (const MemoryRecord& record : *life.memory) {
    if (record.rank == rank) records.push_back(&record);
  }
  for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
    const std::string phase = phase_of(event);
    if (phase.empty()) continue;
    ++recorded.phases;
    const auto found = std::find_if(records.begin(), records.end(), [&](const MemoryRecord* each) {
      return each->phase == phase && each->step == event.step;
    });
    if (found == records.end()) {
      recorded.missing.push_back(
          fmt::format("{}: no memory record of \"{}\"", quote(life, rank, event), phase));
      continue;
    }
    recorded.measured += (*found)->missing.empty() ? 1 : 0;
    records.erase(found);
  }
}

// M3 is judged on these: what the process itself holds. File pages are left out, so that a growing
// page cache hides nothing and raises no alarm; and of anonymous pages all count, not the process'
// share of them: of what a fork server imported, each rank's share grows as others end.
struct Holding {
  const char* name;
  const char* otherwise;  // where there are too few points of the first
  const char* unit;
  double slack;         // a save
  double slack_of_few;  // of points that are few, or counted
};
// A leak of one a save is 1; of a count nothing else grows steadily. C libraries and interpreters
// take memory from the system in arenas of 132 KiB to 256 KiB, which a growing log or cache of
// theirs fills over many saves.
constexpr double kArena = 256 * 1024;
// Frameworks are still filling their pools in the first dozens of saves (419 to 752 KB a save were
// seen of PyTorch with Gloo, 350 KB with CUDA), and the kernel's counters lag by some MiB on many
// cores. A leak of 1 MiB is more.
constexpr double kFilling = 3.5 * kArena;
constexpr std::size_t kFewPoints = 24;
// A large process (one that uses CUDA, say) is not walked at every save: then its pages are as
// counted.
constexpr std::array<Holding, 7> kHoldings = {
    {{"open_files", "", "", 0.5, 0.5},
     {"deleted_files", "", "", 0.5, 0.5},
     {"threads", "", "", 0.5, 0.5},
     {"children", "", "", 0.5, 0.5},
     {"anonymous", "rss_anon", " bytes", kArena, kFilling},
     {"pss_shmem", "rss_shmem", " bytes", kArena, kFilling},
     {"pinned", "", " bytes", kArena, kFilling}}};
// The first saves fill pools and caches; fewer points than these show no trend.
constexpr std::size_t kWarmUp = 2;
constexpr std::size_t kLeastPoints = 8;

// Where phases share a measurement it is of the last of them: the step by the time of measuring.
std::map<std::uint64_t, std::int64_t> measured_steps(const Life& life, int rank) {
  std::map<std::uint64_t, std::int64_t> steps;
  for (const MemoryRecord& record : *life.memory) {
    if (record.rank != rank || !record.step) continue;
    const auto [at, fresh] = steps.emplace(record.time_ns, *record.step);
    if (!fresh) at->second = std::max(at->second, *record.step);
  }
  return steps;
}

// The steps that the rank saved. A synchronous save may end without a `durable`, and so without
// "save".
std::vector<std::int64_t> saved_steps(const Life& life, int rank) {
  std::set<std::int64_t> saved;
  for (const MemoryRecord& record : *life.memory) {
    const bool saves = record.phase == "save" || record.phase == "before save";
    if (record.rank == rank && record.step && saves) saved.insert(*record.step);
  }
  return {saved.begin(), saved.end()};
}

// The least that the rank's process held from the steps before each save to its end: a sample taken
// in the middle of a save holds more, and counts only where there is no other.
std::vector<Point> floors(const Life& life, int rank, const char* name) {
  const auto steps = measured_steps(life, rank);
  const auto saved = saved_steps(life, rank);
  std::map<std::ptrdiff_t, double> least;
  for (const MemoryRecord& record : *life.memory) {
    const auto value = fact_of(record.facts, name);
    if (record.rank != rank || !record.step || !value) continue;
    if (steps.at(record.time_ns) != *record.step) continue;
    const auto save =
        std::lower_bound(saved.begin(), saved.end(), *record.step) - saved.begin() + 1;
    const auto [at, fresh] = least.emplace(save, static_cast<double>(*value));
    if (!fresh) at->second = std::min(at->second, static_cast<double>(*value));
  }
  std::vector<Point> points;
  points.reserve(least.size());
  for (const auto& [save, value] : least) points.emplace_back(static_cast<double>(save), value);
  points.erase(points.begin(),
               points.begin() + static_cast<std::ptrdiff_t>(std::min(kWarmUp, points.size())));
  return points;
}

struct Growth {
  std::set<std::string> judged;  // names of kHoldings of which there were points enough
  std::size_t least_saves = std::numeric_limits<std::size_t>::max();
  double anonymous = 0;  // bytes a save, the most that was seen
  Lines lines;
};

void check_growth(const Life& life, int rank, Growth& growth) {
  for (const Holding& holding : kHoldings) {
    const char* name = holding.name;
    bool counted = false;
    auto points = floors(life, rank, name);
    if (points.size() < kLeastPoints && *holding.otherwise != '\0') {
      name = holding.otherwise;
      counted = true;
      points = floors(life, rank, name);
    }
    if (points.size() < kLeastPoints) continue;
    growth.judged.insert(name);
    growth.least_saves = std::min(growth.least_saves, points.size());
    const bool few = counted || points.size() < kFewPoints;
    const double slack = few ? holding.slack_of_few : holding.slack;
    const Trend trend = trend_of(points);
    if (std::string_view(holding.name) == "anonymous") {
      growth.anonymous = std::max(growth.anonymous, trend.slope);
    }
    if (trend.slope < slack || trend.lower_quartile <= 0) continue;
    growth.lines.push_back(fmt::format(
        "life {} rank {}: {} grows by {:.2f}{} a save: {:.0f} at save {:.0f}, {:.0f} at save "
        "{:.0f} of this life",
        life.record.number, rank, name, trend.slope, holding.unit, points.front().second,
        points.front().first, points.back().second, points.back().first));
  }
}

}  // namespace

reports::Verdict host_memory_recorded(const Evidence& evidence) {
  Recorded recorded;
  bool any_file = false;
  for (const Life& life : evidence.lives) {
    if (!life.memory) continue;
    any_file = true;
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      check_rank(life, static_cast<int>(rank), recorded);
    }
  }
  if (!any_file) return skip("M1", "there is no memory.jsonl: an older version collected this");
  if (!recorded.missing.empty()) {
    return invalid_evidence("M1", "host memory was not recorded at the end of a phase",
                            std::move(recorded.missing));
  }
  if (recorded.phases == 0) return skip("M1", "no event tells of a phase");
  if (recorded.measured == 0) {
    return skip("M1", fmt::format("all ranks had ended before any of the {} phases was measured",
                                  recorded.phases));
  }
  return pass("M1", fmt::format("host memory was recorded at the end of {} phases, {} not obtained",
                                recorded.phases, recorded.phases - recorded.measured));
}

reports::Verdict nothing_grows(const Evidence& evidence) {
  Growth growth;
  for (const Life& life : evidence.lives) {
    if (!life.memory) continue;
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      check_growth(life, static_cast<int>(rank), growth);
    }
  }
  if (!growth.lines.empty()) {
    return violated("M3", "what a process holds grows from save to save", std::move(growth.lines));
  }
  if (growth.judged.empty()) {
    return skip("M3", fmt::format("no life has {} saves, of which the first {} do not count",
                                  kLeastPoints + kWarmUp, kWarmUp));
  }
  return pass("M3",
              fmt::format("over {} saves no process gained {}; anonymous memory {:+.0f} bytes "
                          "a save at most",
                          growth.least_saves, fmt::join(growth.judged, ", "), growth.anonymous));
}

}  // namespace savegate::harness
