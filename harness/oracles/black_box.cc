#include "harness/oracles/black_box.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/publish.h"

namespace savegate::harness {
namespace {

using faults::Role;
using faults::TraceRecord;
using Lines = std::vector<std::string>;

bool all_ended_well(const Life& life) {
  const auto& ranks = life.record.ranks;
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [](const RankProcess& process) {
    return process.exit_status == 0;
  });
}

bool may_be_retried(int error) { return error == EINTR || error == EAGAIN; }

// The first error that a rule gave to a rank that then left with an error.
const TraceRecord* fatal_error(const Life& life) {
  for (const TraceRecord& record : life.trace.records) {
    if (!record.faulted || record.error == 0 || may_be_retried(record.error)) continue;
    if (record.caller.rank >= 0 && !ended_well(life, record.caller.rank)) return &record;
  }
  return nullptr;
}

}  // namespace

bool ended_well(const Life& life, int rank) {
  const RankProcess* process = process_of(life, rank);
  return process != nullptr && process->exit_status == 0;
}

reports::Verdict resumes_after_kills(const Evidence& evidence) {
  std::size_t judged = 0;
  Lines lines;
  for (std::size_t i = 0; i + 1 < evidence.lives.size(); ++i) {
    const Life& next = evidence.lives[i + 1];
    if (!was_killed(evidence.lives[i]) || was_killed(next) || !next.record.tampered.empty() ||
        next.spec.expect.outcome != Outcome::kComplete) {
      continue;
    }
    ++judged;
    for (const RankProcess& process : next.record.ranks) {
      if (process.exit_status != 0) lines.push_back(quote(next, process));
    }
  }
  if (!lines.empty()) {
    return violated("C10", "after a kill the program does not run to its end", std::move(lines));
  }
  if (judged == 0) return skip("C10", "no life was killed and followed by another");
  return pass("C10", fmt::format("after {} kills the next life ran to its end; what it restored is "
                                 "not known: no events",
                                 judged));
}

reports::Verdict leaves_whole_files(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    if (!all_ended_well(life)) continue;
    std::set<std::string> earlier;
    for (const FileEntry& entry : life.record.tree_before) earlier.insert(entry.path);
    for (const FileEntry& entry : life.record.tree_after) {
      const auto name = view.classify(entry.path);
      if (entry.type != 'f' || name.role == Role::kNone || earlier.contains(entry.path)) continue;
      ++judged;
      if (name.temporary) {
        lines.push_back(
            fmt::format("after life {}: {} was left behind", life.record.number, entry.path));
      } else if (entry.size == 0 && name.role == Role::kShard) {
        lines.push_back(fmt::format("after life {}: {} is empty", life.record.number, entry.path));
      }
    }
  }
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("F3", first, std::move(lines));
  }
  if (judged == 0) return skip("F3", "no file of the layout was written by a life that ended well");
  return pass("F3", fmt::format("{} files, none temporary, no shard empty; whether they are all "
                                "there and right is not known: no events",
                                judged));
}

reports::Verdict pointer_stays_after_errors(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    const TraceRecord* error = fatal_error(life);
    if (error == nullptr || evidence.subject.layout.pointer.empty()) continue;
    ++judged;
    const PublishedFiles files(view, life);
    for (const Publication& publication : files.all()) {
      if (publication.role == Role::kPointer && publication.record->begin_seq > error->end_seq)
        lines.insert(lines.end(), {quote(life, *error), quote(life, *publication.record)});
    }
  }
  if (!lines.empty()) {
    return violated("C3", "the pointer moved after the error that the program failed on",
                    std::move(lines));
  }
  if (judged == 0) return skip("C3", "no pointer is known, or no rank failed on an error");
  return pass("C3", fmt::format("the pointer stayed in {} lives that failed", judged));
}

}  // namespace savegate::harness
