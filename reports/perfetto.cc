#include "reports/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

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

// What the rank says of itself runs beside its file operations: it may end while one of them does
// not, and slices of one thread have to nest.
std::int64_t track_of(const Slice& slice, int process) {
  switch (slice.kind) {
    case SliceKind::kSave:
    case SliceKind::kPhase:
      return process;
    case SliceKind::kCollective:
      return process + kRanksApart * 5000LL;
    default:
      return slice.thread + kRanksApart * 10000LL;
  }
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
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
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
    for (const Slice& slice : life.slices) add(life, slice);
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
    const std::int64_t track = track_of(slice, process);
    name_thread(process, track,
                slice.kind == SliceKind::kSave || slice.kind == SliceKind::kPhase
                    ? "saves and phases"
                : slice.kind == SliceKind::kCollective ? "collectives"
                                                       : fmt::format("thread {}", slice.thread));
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

  const Scene& scene_;
  std::uint64_t start_ns_ = 0;
  std::vector<Json> metadata_;
  std::vector<std::pair<double, Json>> events_;
  std::set<std::pair<int, std::int64_t>> named_;
};

}  // namespace

std::string print_perfetto(const Scene& scene) { return Printer(scene).print(); }

}  // namespace savegate::reports
