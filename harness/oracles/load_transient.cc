#include "harness/oracles/load_transient.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

// A load works through its state in pieces. Half of it again is a second copy in the making; 8 MiB
// are the pieces themselves, and the pages of libraries that only a load needs.
constexpr std::uint64_t kPieces = 8 << 20;

// What a load takes, and what the process that saved the state held of it.
struct Taken {
  const char* by_load;
  const char* held;
};
constexpr std::array<Taken, 2> kTaken = {{{"rss_peak", "rss"}, {"pinned", "pinned"}}};

// The most at the end of a phase: a process that was measured on its way out holds less.
std::optional<std::uint64_t> held_by(const Life& life, int rank, const char* name) {
  std::optional<std::uint64_t> most;
  for (const MemoryRecord& record : *life.memory) {
    const auto value = fact_of(record.facts, name);
    if (record.rank == rank && value) most = std::max(most.value_or(0), *value);
  }
  return most;
}

const MemoryRecord* load_record(const Life& life, int rank) {
  for (const MemoryRecord& record : *life.memory) {
    if (record.rank == rank && record.phase == "load") return &record;
  }
  return nullptr;
}

struct Loads {
  std::size_t judged = 0;
  std::uint64_t most = 0;  // bytes beyond what the process of the life before held
  std::vector<std::string> lines;
};

void check_load(const Life& saver, const Life& loader, int rank, Loads& loads) {
  const Event* resumed = resumed_event(loader, rank);
  const MemoryRecord* load = load_record(loader, rank);
  if (resumed == nullptr || !resumed->ok || !resumed->step || load == nullptr) return;
  std::uint64_t state = 0;
  for (const Item& item : resumed->items) state += item.bytes;
  const std::uint64_t allowed = state / 2 + kPieces;
  bool judged = false;
  for (const Taken& taken : kTaken) {
    const auto took = fact_of(load->facts, taken.by_load);
    const auto held = held_by(saver, rank, taken.held);
    if (!took || !held) continue;
    judged = true;
    const std::uint64_t extra = *took - std::min(*took, *held);
    loads.most = std::max(loads.most, extra);
    if (extra <= allowed) continue;
    loads.lines.push_back(fmt::format(
        "{}: {} of {} bytes in the load, {} of {} in the life before: {} more, {} are allowed "
        "with a state of {}",
        quote(loader, rank, *resumed), taken.by_load, *took, taken.held, *held, extra, allowed,
        state));
  }
  loads.judged += judged ? 1 : 0;
}

}  // namespace

reports::Verdict load_stays_in_budget(const Evidence& evidence) {
  const auto& claimed = evidence.scenario.requirements;
  if (std::find(claimed.begin(), claimed.end(), "M5") == claimed.end()) {
    return skip("M5", "the scenario states no budget for a load");
  }
  Loads loads;
  for (std::size_t i = 1; i < evidence.lives.size(); ++i) {
    const Life& saver = evidence.lives[i - 1];
    const Life& loader = evidence.lives[i];
    if (!saver.memory || !loader.memory) continue;
    for (std::size_t rank = 0; rank < loader.events.size(); ++rank) {
      check_load(saver, loader, static_cast<int>(rank), loads);
    }
  }
  if (!loads.lines.empty()) {
    return violated("M5", "a load takes more host memory than its budget", std::move(loads.lines));
  }
  if (loads.judged == 0) return skip("M5", "no load was measured");
  return pass("M5", fmt::format("{} loads took at most {} bytes more than the process of the life "
                                "before held",
                                loads.judged, loads.most));
}

}  // namespace savegate::harness
