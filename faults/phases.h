// Phases: where each rank stands in its save or load, as its marks tell.
//
// enter("save 2") opens a span; the second time in a life is attempt 2. point("commit") makes the
// phase "save 2/commit" until the next point or leave(). Where saves overlap, the span entered last
// counts, and leaving an earlier one changes nothing. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "faults/rank_table.h"

namespace savegate::faults {

struct Phase {
  std::string full;  // "save 2/commit"; "" outside any
  std::string span;  // "save 2"
  int attempt = 0;   // 0 outside any span
};

class Phases {
 public:
  void enter(int rank, std::string_view span);
  void leave(int rank, std::string_view span);
  void point(int rank, std::string_view name);
  // Never null; immutable, so that it can be read while the rank goes on.
  std::shared_ptr<const Phase> now(int rank) const;
  // Another number for every phase of the rank; 0 before the first.
  std::uint64_t serial(int rank) const;

 private:
  struct Rank {
    explicit Rank(int) {}
    void set(std::shared_ptr<const Phase> next);  // under the mutex

    std::mutex mutex;  // innermost
    std::shared_ptr<const Phase> phase;
    std::map<std::string, int, std::less<>> attempts;
    std::atomic<std::uint64_t> serial{0};
  };
  RankTable<Rank> ranks_;
  const std::shared_ptr<const Phase> outside_ = std::make_shared<const Phase>();
};

}  // namespace savegate::faults
