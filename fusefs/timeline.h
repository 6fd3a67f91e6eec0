// What somebody who learns of changes late still sees: the states that something went through, each
// with who ended it and when.
//
//   Timeline<struct stat> size;
//   auto id = size.begin(/*by=*/0, before);   // rank 0 is about to change it
//   size.finish(id, now, 0);                  // it has
//   size.hidden(/*viewer=*/1, now - 2s);      // what rank 1 sees if it is 2 s behind: &before
//
// Everybody sees his own changes at once, and with them all that came before. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace savegate::fusefs {

using Viewer = std::int64_t;  // a rank; below 0 the process of one that is no rank

template <class State>
class Timeline {
 public:
  // From here on until it is finished or cancelled the change is hidden from all others.
  std::uint64_t begin(Viewer by, State before) {
    changes_.push_back({++last_id_, by, kOngoing, std::move(before)});
    return last_id_;
  }
  // Changes that one viewer makes within `grain` of each other count as one, at the time of the
  // first.
  void finish(std::uint64_t id, std::uint64_t now, std::uint64_t grain) {
    const auto at = find(id);
    if (at == changes_.end()) return;
    at->time = now;
    seen_[at->by] = now;
    if (at == changes_.begin()) return;
    const Change& earlier = *(at - 1);
    const bool close = earlier.time != kOngoing && now - earlier.time < grain;
    if (close && earlier.by == at->by && last_sync_ <= earlier.time) changes_.erase(at);
  }
  void cancel(std::uint64_t id) {
    const auto at = find(id);
    if (at != changes_.end()) changes_.erase(at);
  }
  // The viewer has been shown all that has happened so far.
  void sync(Viewer viewer, std::uint64_t now) { seen_[viewer] = last_sync_ = now; }

  // The state before the first change by another that is younger than `since` and that the viewer
  // does not know of; null where it sees what is there.
  const State* hidden(Viewer viewer, std::uint64_t since) const {
    const auto known = seen_.find(viewer);
    if (known != seen_.end()) since = std::max(since, known->second);
    for (const Change& change : changes_) {
      if (change.by != viewer && change.time > since) return &change.before;
    }
    return nullptr;
  }
  // Whether another changed it later than that.
  bool changed_by_another(Viewer viewer, std::uint64_t since) const {
    return hidden(viewer, since) != nullptr;
  }

  // Changes until then are hidden from nobody any more.
  void forget(std::uint64_t until) {
    std::erase_if(changes_, [until](const Change& change) { return change.time <= until; });
  }
  bool empty() const { return changes_.empty(); }
  std::size_t size() const { return changes_.size(); }

 private:
  static constexpr std::uint64_t kOngoing = UINT64_MAX;
  struct Change {
    std::uint64_t id;
    Viewer by;
    std::uint64_t time;
    State before;
  };
  auto find(std::uint64_t id) {
    return std::find_if(changes_.begin(), changes_.end(),
                        [id](const Change& change) { return change.id == id; });
  }

  std::vector<Change> changes_;
  std::map<Viewer, std::uint64_t> seen_;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_sync_ = 0;
};

}  // namespace savegate::fusefs
