#include "harness/oracles/export.h"

#include <fmt/format.h>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

std::string quote_export(const Life& life, int rank, const Event& event) {
  return fmt::format("{} digest {}", quote(life, rank, event), event.digest);
}

struct Export {
  const Life* life = nullptr;
  const Event* event = nullptr;
};

// The rank's last export of that step in a life before this one.
Export earlier_export(const Evidence& evidence, const Life& before, int rank, std::int64_t step) {
  Export found;
  for (const Life& life : evidence.lives) {
    if (&life == &before) break;
    for (const Event& event : life.events[static_cast<std::size_t>(rank)].events) {
      if (event.kind == EventKind::kExport && event.step == step) found = {&life, &event};
    }
  }
  return found;
}

class Resume {
 public:
  Resume(const Evidence& evidence, const Life& life, int rank, const Event& resumed)
      : evidence_(evidence), life_(life), rank_(rank), resumed_(resumed) {}

  // Looks at the export of the restored step, and at the later ones of steps known before.
  void judge() {
    for (const Event& event : life_.events[static_cast<std::size_t>(rank_)].events) {
      if (event.kind != EventKind::kExport || !event.step || event.time_ns < resumed_.time_ns) {
        continue;
      }
      const Export earlier = earlier_export(evidence_, life_, rank_, *event.step);
      if (earlier.event == nullptr) continue;
      const bool equal = earlier.event->digest == event.digest;
      if (*event.step == *resumed_.step) {
        compared = true;
        differs = differs || !equal;
      } else {
        matches_later = matches_later || equal;
      }
      lines.push_back(quote_export(*earlier.life, rank_, *earlier.event));
      lines.push_back(quote_export(life_, rank_, event));
    }
  }

  bool compared = false;
  bool differs = false;
  bool matches_later = false;
  Lines lines;

 private:
  const Evidence& evidence_;
  const Life& life_;
  const int rank_;
  const Event& resumed_;
};

}  // namespace

reports::Verdict first_export_after_restore(const Evidence& evidence) {
  const View view(evidence);
  std::size_t compared = 0;
  bool stale = false;
  Lines lines;
  for (const Life& life : evidence.lives) {
    for (int rank = 0; rank < view.world(); ++rank) {
      const Event* resumed = resumed_event(life, rank);
      if (resumed == nullptr || !resumed->ok || !resumed->step) continue;
      Resume resume(evidence, life, rank, *resumed);
      resume.judge();
      compared += resume.compared ? 1 : 0;
      if (!resume.differs) continue;
      stale = stale || resume.matches_later;
      lines.insert(lines.end(), resume.lines.begin(), resume.lines.end());
    }
  }
  if (!lines.empty()) {
    return violated("R4",
                    stale ? "stale derived state: the first export after a restore differs, and "
                            "matches again at a later step"
                          : "the first export after a restore is not that of the saving step",
                    std::move(lines));
  }
  if (compared == 0) return skip("R4", "no export of a restored step, before and after");
  return pass(
      "R4", fmt::format("{} first exports after a restore are those of the saving step", compared));
}

}  // namespace savegate::harness
