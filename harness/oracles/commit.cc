#include "harness/oracles/commit.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/black_box.h"
#include "harness/oracles/publish.h"

namespace savegate::harness {
namespace {

using Lines = std::vector<std::string>;

// The pointer took a new value after an error had been given to a rank of this save.
const faults::TraceRecord* pointer_moved_after_error(const View& view, const SaveGroup& group) {
  const Life& life = *group.life;
  const PublishedFiles files(view, life);
  const auto error = std::find_if(
      life.trace.records.begin(), life.trace.records.end(), [&](const faults::TraceRecord& record) {
        return record.faulted && record.error != 0 && record.error != EINTR &&
               record.begin_ns >= group.begin_ns && record.begin_ns <= group.end_ns;
      });
  if (error == life.trace.records.end()) return nullptr;
  for (const Publication& publication : files.all()) {
    if (publication.role == faults::Role::kPointer &&
        publication.record->begin_seq > error->end_seq &&
        publication.record->begin_ns <= group.end_ns) {
      return publication.record;
    }
  }
  return nullptr;
}

bool saved_before(const View& view, const SaveGroup& failed) {
  return std::any_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& group) {
    return group.step == failed.step && group.begin_ns < failed.begin_ns && view.succeeded(group);
  });
}

bool saved_later(const View& view, const SaveGroup& failed) {
  return std::any_of(view.groups().begin(), view.groups().end(), [&](const SaveGroup& group) {
    return group.step == failed.step && group.begin_ns > failed.begin_ns &&
           group.life == failed.life && view.succeeded(group);
  });
}

void check_announced(const View& view, const SaveGroup& group, bool& announced, Lines& lines) {
  const Life& life = *group.life;
  for (const Checkpoint& checkpoint : life.checkpoints) {
    if (checkpoint.step != group.step || !checkpoint.announced) continue;
    if (!checkpoint.complete) {
      lines.push_back(fmt::format("after life {}: {} is announced and not complete: {}",
                                  life.record.number, checkpoint.path, checkpoint.error));
    } else if (const auto* moved =
                   was_killed(life) ? nullptr : pointer_moved_after_error(view, group)) {
      lines.push_back(quote(life, *moved));
    } else {
      announced = true;  // the error came after the pointer had moved: nothing was advanced by it
    }
  }
}

// The next life goes on from the newest checkpoint that was saved before this one.
void check_next_life(const View& view, const SaveGroup& group, Lines& lines) {
  const auto& lives = view.evidence().lives;
  const auto index = static_cast<std::size_t>(group.life - lives.data());
  if (index + 1 >= lives.size()) return;
  const Life& next = lives[index + 1];
  if (!next.record.tampered.empty()) return;
  const SaveGroup* previous = nullptr;
  for (const SaveGroup& candidate : view.groups()) {
    if (view.succeeded(candidate) && candidate.begin_ns < group.begin_ns) previous = &candidate;
  }
  for (std::size_t rank = 0; rank < next.events.size(); ++rank) {
    const Event* resumed = resumed_event(next, static_cast<int>(rank));
    if (resumed == nullptr || !resumed->ok) continue;
    const bool failed_one = resumed->step == group.step;
    const bool lost = previous != nullptr && (!resumed->step || *resumed->step < previous->step);
    if (failed_one || lost) lines.push_back(quote(next, static_cast<int>(rank), *resumed));
  }
}

// "enter" events of one rank on each communicator, in order.
using Sequence = std::vector<const Event*>;
std::map<std::string, Sequence> sequences(const EventLog& log) {
  std::map<std::string, Sequence> found;
  for (const Event& event : log.events) {
    if (event.kind == EventKind::kCollectiveEnter) found[event.name].push_back(&event);
  }
  return found;
}

std::string described(const Event& event) {
  return fmt::format("{}#{} {}", event.name, event.number, event.collective);
}

void compare_sequences(const Life& life, int rank_a, const Sequence& a, int rank_b,
                       const Sequence& b, Lines& lines) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (a[i]->collective == b[i]->collective && a[i]->number == b[i]->number) continue;
    lines.push_back(
        fmt::format("life {}: rank {} enters {} (events:{}) where rank {} enters {} "
                    "(events:{})",
                    life.record.number, rank_a, described(*a[i]), a[i]->line, rank_b,
                    described(*b[i]), b[i]->line));
    return;
  }
  // A rank that died or failed may have stopped early; one that is done has taken part in all.
  const auto check_done = [&](int rank, std::size_t own, const Sequence& other, int other_rank) {
    if (own < other.size() && first_event(life, rank, EventKind::kDone) != nullptr) {
      lines.push_back(fmt::format(
          "life {}: rank {} is done after {} collectives, but rank {} "
          "enters {} (events:{})",
          life.record.number, rank, own, other_rank, described(*other[own]), other[own]->line));
    }
  };
  check_done(rank_a, a.size(), b, rank_b);
  check_done(rank_b, b.size(), a, rank_a);
}

}  // namespace

reports::Verdict tracker_stays(const Evidence& evidence) {
  if (is_black_box(evidence)) return pointer_stays_after_errors(evidence);
  const View view(evidence);
  std::size_t judged = 0;
  std::size_t failed = 0;
  Lines lines;
  for (const SaveGroup& group : view.groups()) {
    if (view.succeeded(group) || saved_before(view, group) || saved_later(view, group)) continue;
    ++failed;
    const bool looked = reader_looked(evidence, *group.life);
    const bool has_next = group.life + 1 < evidence.lives.data() + evidence.lives.size();
    if (!looked && !has_next) continue;
    ++judged;
    bool announced = false;
    check_announced(view, group, announced, lines);
    if (!announced && !was_killed(*group.life)) check_next_life(view, group, lines);
  }
  if (!lines.empty()) {
    return violated("C3", "a failed save advanced the tracker, or was resumed from",
                    std::move(lines));
  }
  if (failed == 0) return skip("C3", "no save failed");
  if (judged == 0) return skip("C3", "not obtained: no reader looked, and no life came after");
  return pass("C3", fmt::format("{} failed saves left the tracker where it was", judged));
}

reports::Verdict same_collectives(const Evidence& evidence) {
  std::size_t compared = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    // Communicator → the ranks that use it.
    std::map<std::string, std::vector<std::pair<int, Sequence>>> members;
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      for (auto& [name, sequence] : sequences(life.events[rank])) {
        members[name].emplace_back(static_cast<int>(rank), std::move(sequence));
      }
    }
    for (const auto& [name, ranks] : members) {
      // The longest is the measure: being a prefix of it makes all prefixes of one another.
      const auto longest = std::max_element(
          ranks.begin(), ranks.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      for (const auto& [rank, sequence] : ranks) {
        if (rank == longest->first) continue;
        compared += std::min(sequence.size(), longest->second.size());
        compare_sequences(life, longest->first, longest->second, rank, sequence, lines);
      }
    }
  }
  if (!lines.empty()) {
    return violated("C6", "ranks take part in different collectives", std::move(lines));
  }
  if (compared == 0) return skip("C6", "no collective events of two ranks");
  return pass("C6", fmt::format("{} collectives entered in the same order", compared));
}

}  // namespace savegate::harness
