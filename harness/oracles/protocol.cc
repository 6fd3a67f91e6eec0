#include "harness/oracles/protocol.h"

#include <fmt/format.h>

#include <map>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

// What has been told of the rank's newest save of a step.
struct Told {
  const Event* end = nullptr;
  const Event* durable = nullptr;
};

class RankProtocol {
 public:
  RankProtocol(const Life& life, int rank) : life_(life), rank_(rank) {}

  void check(const Event& event, int world) {
    if (event.rank != rank_) add(event, fmt::format("says that it is of rank {}", event.rank));
    const LifeRecord& record = life_.record;
    if (record.ended_ns != 0 &&
        (event.time_ns < record.started_ns || event.time_ns > record.ended_ns)) {
      add(event, fmt::format("its time_ns, {}, is no moment of the life, {} to {}: it is to be "
                             "CLOCK_MONOTONIC",
                             event.time_ns, record.started_ns, record.ended_ns));
    }
    if (event.kind == EventKind::kHello && event.world != world) {
      add(event, fmt::format("speaks of {} ranks, {} were launched", event.world, world));
    }
    if (event.kind == EventKind::kHookError) {
      add(event, fmt::format("the subject's hook failed in `{}`: {}", event.name,
                             event.error ? event.error->text : "no reason given"));
    }
    check_process(event);
    check_save(event);
  }

  std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  // A child process may report on what it does for its rank; it is not the rank.
  void check_process(const Event& event) {
    if (event.kind == EventKind::kHello) {
      if (hello_ != nullptr) add(event, fmt::format("said already in line {}", hello_->line));
      hello_ = &event;
      return;
    }
    if (event.pid == 0) return;
    using enum EventKind;
    if (event.kind != kResumed && event.kind != kUpdate && event.kind != kDone) return;
    add(event, fmt::format("said by process {}, a child of the rank's own", event.pid));
  }

  void check_save(const Event& event) {
    const bool begin = event.kind == EventKind::kSaveBegin;
    const bool end = event.kind == EventKind::kSaveEnd;
    if (!begin && !end && event.kind != EventKind::kDurable) return;
    if (!event.save) add(event, "does not say which save it is of (`save`)");
    const std::int64_t step = event.step.value_or(0);
    if (begin) {
      saves_[step] = {};
      return;
    }
    const auto save = saves_.find(step);
    if (save == saves_.end()) return add(event, "no save_begin of that step came before it");
    const Event*& told = end ? save->second.end : save->second.durable;
    if (told != nullptr) add(event, fmt::format("said already in line {}", told->line));
    if (!end && event.ok && save->second.end != nullptr && !save->second.end->ok) {
      add(event, fmt::format("the save failed by line {}", save->second.end->line));
    }
    told = &event;
  }

  void add(const Event& event, const std::string& what) {
    lines_.push_back(fmt::format("{}: {}", quote(life_, rank_, event), what));
  }

  const Life& life_;
  const int rank_;
  const Event* hello_ = nullptr;
  std::map<std::int64_t, Told> saves_;  // by step
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> broken_protocol(const Life& life) {
  std::vector<std::string> lines;
  const int world = static_cast<int>(life.record.ranks.size());
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    RankProtocol protocol(life, static_cast<int>(rank));
    for (const Event& event : life.events[rank].events) protocol.check(event, world);
    for (std::string& line : std::move(protocol).lines()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace savegate::harness
