#include "reports/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "faults/json_text.h"
#include "reports/json_fields.h"

namespace savegate::reports {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRanksApart = 10000;  // process of rank 3 in life 2: 20004

int process_of(int life, int rank) { return life * kRanksApart + rank + 1; }

double microseconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1e3 : 0;
}

std::string_view category(SliceKind kind) {
  switch (kind) {
    case SliceKind::kSave:
      return "save";
    case SliceKind::kPhase:
      return "phase";
    case SliceKind::kCollective:
      return "collective";
    default:
      return "file";
  }
}

// Numbers of threads, below 2^31: lanes of a track, then tracks of a kind.
constexpr std::int64_t kLanesApart = 10'000'000;
constexpr std::int64_t kTracksApart = 500'000'000;

// What the rank says of itself runs beside its file operations: it may end while one of them does
// not, and slices of one thread have to nest.
std::int64_t track_of(const Slice& slice, int process) {
  switch (slice.kind) {
    case SliceKind::kSave:
    case SliceKind::kPhase:
      return process;
    case SliceKind::kCollective:
      return process + kTracksApart;
    default:
      return slice.thread + 2 * kTracksApart;
  }
}

std::string track_name(const Slice& slice) {
  switch (slice.kind) {
    case SliceKind::kSave:
    case SliceKind::kPhase:
      return "saves and phases";
    case SliceKind::kCollective:
      return "collectives";
    default:
      return fmt::format("thread {}", slice.thread);
  }
}

// By their beginning, and what is around others before them.
std::vector<Slice> outer_first(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& one, const Slice& other) {
    return std::pair(one.begin_ns, other.end_ns) < std::pair(other.begin_ns, one.end_ns);
  });
  return slices;
}

class Printer {
 public:
  explicit Printer(const Scene& scene) : scene_(scene) {
    for (const SceneLife& life : scene.lives)
      if (start_ns_ == 0 || life.begin_ns < start_ns_) start_ns_ = life.begin_ns;
  }

  std::string print() {
    for (const SceneLife& life : scene_.lives) add(life);
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    Json all = Json::array();
    for (Json& event : metadata_) all.push_back(std::move(event));
    for (auto& [time, event] : events_) all.push_back(std::move(event));
    const Json document = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}};
    return faults::json_text(document) + "\n";
  }

 private:
  double at(std::uint64_t time_ns) const { return microseconds(start_ns_, time_ns); }

  void name(const char* what, int process, std::int64_t thread, const std::string& text) {
    metadata_.push_back({{"ph", "M"},
                         {"name", what},
                         {"pid", process},
                         {"tid", thread},
                         {"args", {{"name", text}}}});
  }

  void name_thread(int process, std::int64_t thread, const std::string& text) {
    if (named_.emplace(process, thread).second) name("thread_name", process, thread, text);
  }

  void add(const SceneLife& life) {
    for (int rank = 0; rank < scene_.world; ++rank)
      name("process_name", process_of(life.number, rank), 0,
           fmt::format("life {} rank {}", life.number, rank));
    const int whole = life.number * kRanksApart;
    if (!life.unsynced.empty())
      name("process_name", whole, 0, fmt::format("life {} file system", life.number));
    for (const Slice& slice : outer_first(life.slices)) add(life, slice);
    for (const Instant& instant : life.instants) {
      const int process = process_of(life.number, instant.rank);
      events_.emplace_back(at(instant.time_ns),
                           Json{{"ph", "i"},
                                {"s", "p"},
                                {"name", instant.name},
                                {"cat", instant.kind == InstantKind::kFault ? "fault" : "end"},
                                {"pid", process},
                                {"tid", process},
                                {"ts", at(instant.time_ns)},
                                {"args", {{"detail", instant.detail}}}});
    }
    for (const CounterPoint& point : life.unsynced)
      events_.emplace_back(at(point.time_ns), Json{{"ph", "C"},
                                                   {"name", "un-synced bytes"},
                                                   {"pid", whole},
                                                   {"tid", 0},
                                                   {"ts", at(point.time_ns)},
                                                   {"args", {{"bytes", point.bytes}}}});
  }

  void add(const SceneLife& life, const Slice& slice) {
    const int process = process_of(life.number, slice.rank);
    const std::size_t lane = lane_of(process, slice);
    const std::int64_t track =
        track_of(slice, process) + kLanesApart * static_cast<std::int64_t>(lane);
    name_thread(process, track,
                lane == 0 ? track_name(slice)
                          : fmt::format("{}, also under way ({})", track_name(slice), lane));
    events_.emplace_back(at(slice.begin_ns),
                         Json{{"ph", "X"},
                              {"name", slice.name},
                              {"cat", category(slice.kind)},
                              {"pid", process},
                              {"tid", track},
                              {"ts", at(slice.begin_ns)},
                              {"dur", microseconds(slice.begin_ns, slice.end_ns)},
                              {"args", {{"detail", slice.detail}, {"failed", slice.failed}}}});
  }

  // The first lane of its track in which the slice nests: a save in the background has collectives
  // of its own while those of the training go on.
  std::size_t lane_of(int process, const Slice& slice) {
    std::vector<std::vector<std::uint64_t>>& lanes = lanes_[{process, track_of(slice, process)}];
    const std::uint64_t end_ns = std::max(slice.begin_ns, slice.end_ns);
    for (std::size_t lane = 0;; ++lane) {
      if (lane == lanes.size()) lanes.emplace_back();
      std::vector<std::uint64_t>& around = lanes[lane];
      while (!around.empty() && around.back() <= slice.begin_ns) around.pop_back();
      if (!around.empty() && around.back() < end_ns) continue;
      around.push_back(end_ns);
      return lane;
    }
  }

  const Scene& scene_;
  // By process and track: of each lane the ends of the slices that are around what comes next.
  std::map<std::pair<int, std::int64_t>, std::vector<std::vector<std::uint64_t>>> lanes_;
  std::uint64_t start_ns_ = 0;
  std::vector<Json> metadata_;
  std::vector<std::pair<double, Json>> events_;
  std::set<std::pair<int, std::int64_t>> named_;
};

}  // namespace

std::string print_perfetto(const Scene& scene) { return Printer(scene).print(); }

}  // namespace savegate::reports
