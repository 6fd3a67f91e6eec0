// What oracles read out of evidence: saves as calls of all ranks, victims, steps of paths, quotes.
//
// A SaveGroup is one save as the job did it: the calls of all ranks for one step, matched by their
// order within the life. Its window is the span of time in which file operations belong to it.
//
//   View view(evidence);
//   for (const SaveGroup& group : view.groups()) if (view.succeeded(group)) …
//
// Holds pointers into the evidence, which must outlive it.
#pragma once

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "harness/evidence.h"

namespace savegate::harness {

enum class CallState : std::uint8_t { kSucceeded, kFailed, kUnfinished };

struct SaveCall {
  int rank = 0;
  const Event* begin = nullptr;
  const Event* end = nullptr;
  const Event* durable = nullptr;
  CallState state = CallState::kUnfinished;
  // The event that says so: durable where there is one, else save_end; null while unfinished.
  const Event* last() const { return durable != nullptr ? durable : end; }
};

struct SaveGroup {
  const Life* life = nullptr;
  std::int64_t step = 0;
  std::optional<int> save;  // N of "save N"
  int occurrence = 1;       // the life's first, second … save of this step
  std::vector<SaveCall> calls;
  std::uint64_t begin_ns = 0;  // window, CLOCK_MONOTONIC
  std::uint64_t end_ns = 0;
  const SaveCall* call_of(int rank) const;
};

class View {
 public:
  explicit View(const Evidence& evidence);

  const Evidence& evidence() const { return evidence_; }
  int world() const { return evidence_.scenario.world; }
  const std::vector<SaveGroup>& groups() const { return groups_; }
  // The life's save of that step whose window holds the moment; any step where none is given.
  const SaveGroup* group_at(const Life& life, std::uint64_t time_ns,
                            std::optional<std::int64_t> step = std::nullopt) const;
  bool succeeded(const SaveGroup& group) const;  // on every rank of the world
  // The saves that can have written what is on disk of this step at that moment: the last one that
  // succeeded and those after it that died or failed on the way; all of them if none succeeded.
  std::vector<const SaveGroup*> writers(std::int64_t step, std::uint64_t before_ns) const;
  std::optional<int> save_number(std::int64_t step) const;
  std::optional<std::int64_t> step_of_save(int save) const;

  std::optional<std::int64_t> step_of(std::string_view path) const;
  faults::Classified classify(std::string_view path) const;

 private:
  void collect(const Life& life);

  const Evidence& evidence_;
  std::optional<std::regex> step_pattern_;
  std::vector<SaveGroup> groups_;
};

// A rank that a rule, a guard or the kernel killed, or that a rule held for good: it cannot leave
// with an error.
bool is_victim(const Life& life, int rank);
bool has_victim(const Life& life);
bool was_killed(const Life& life);          // a kill rule acted in it, a guard, or the kernel
bool was_held(const Life& life, int rank);  // a hang rule acted on the rank
const RankProcess* process_of(const Life& life, int rank);
bool ended_by_runner(const RankProcess& process);
// It ended the peers of a rank that had left: what they would have done is not known.
bool ended_by_launcher(const RankProcess& process);
const Event* first_event(const Life& life, int rank, EventKind kind);
// The rank's last word on its restore.
const Event* resumed_event(const Life& life, int rank);
// It said that it refuses, or left with an error before it restored, trained or saved anything. Of
// a black box it cannot be told.
bool refused_load(const Life& life, int rank);
bool reader_looked(const Evidence& evidence, const Life& life);  // at what the life left
bool is_black_box(const Evidence& evidence);                     // no rank ever wrote an event
std::string last_component(std::string_view path);
std::string parent_of(std::string_view path);

// Quotes, one line each.
std::string quote(const Life& life, int rank, const Event& event);
std::string quote(const Life& life, const faults::TraceRecord& record);
std::string quote(const Life& life, const RankProcess& process);
std::string quote(const Item& item);
// The ranks that left with an error or crashed, unasked, each with the last that it printed.
std::vector<std::string> bad_ends(const Life& life);

reports::Verdict pass(std::string_view requirement, std::string summary);
reports::Verdict skip(std::string_view requirement, std::string reason);
reports::Verdict violated(std::string_view requirement, std::string summary,
                          std::vector<std::string> evidence);
reports::Verdict invalid_evidence(std::string_view requirement, std::string summary,
                                  std::vector<std::string> evidence = {});

}  // namespace savegate::harness
