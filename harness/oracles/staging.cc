#include "harness/oracles/staging.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

// Of one rank in one life, in bytes.
struct Staged {
  std::optional<std::uint64_t> before;  // the first save
  std::uint64_t nominal = 0;            // at most, by snapshot
  std::uint64_t actual = 0;
  const Event* last = nullptr;  // record after a save
};

std::optional<std::uint64_t> fact(const Event& event, const std::string& name) {
  const auto found = event.memory.find(name);
  return found == event.memory.end() ? std::nullopt : found->second;
}

Staged staged_by(const Life& life, int rank) {
  Staged staged;
  for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
    const auto held = fact(event, "host_staging");
    if (event.kind != EventKind::kMemory || !held) continue;
    if (event.name == "before save" && !staged.before) staged.before = held;
    if (event.name == "save") staged.last = &event;
    if (event.name != "snapshot") continue;
    staged.actual = std::max(staged.actual, *held);
    staged.nominal = std::max(staged.nominal, fact(event, "host_staging_used").value_or(0));
  }
  return staged;
}

}  // namespace

reports::Verdict staging_given_back(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  std::uint64_t nominal = 0;
  std::uint64_t actual = 0;
  std::vector<std::string> lines;
  for (const Life& life : evidence.lives) {
    for (int rank = 0; rank < view.world(); ++rank) {
      // A rank that did not come to its end may have had a save under way.
      if (first_event(life, rank, EventKind::kDone) == nullptr) continue;
      const Staged staged = staged_by(life, rank);
      if (staged.actual == 0 || staged.last == nullptr || !staged.before) continue;
      ++judged;
      nominal = std::max(nominal, staged.nominal);
      actual = std::max(actual, staged.actual);
      const std::uint64_t after = fact(*staged.last, "host_staging").value_or(0);
      if (after <= *staged.before) continue;
      lines.push_back(
          fmt::format("{}: {} bytes of staging after the last save, {} before the first",
                      quote(life, rank, *staged.last), after, *staged.before));
    }
  }
  if (!lines.empty()) {
    return violated("M4", "staging memory is kept after the save", std::move(lines));
  }
  if (judged == 0) return skip("M4", "no snapshot told of its staging memory");
  return pass("M4", fmt::format("{} ranks gave their staging back after the last save; a snapshot "
                                "asked for {} bytes and held {}",
                                judged, nominal, actual));
}

}  // namespace savegate::harness
