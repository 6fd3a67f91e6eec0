#include <fmt/format.h>

#include <algorithm>

#include "harness/oracles/black_box.h"
#include "harness/oracles/compare.h"
#include "harness/oracles/errors.h"
#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::TraceRecord;

bool is_write(const TraceRecord& record) { return record.op == Op::kWrite; }

bool is_short(const TraceRecord& record) {
  return record.faulted && record.error == 0 && record.returned < record.requested;
}

bool was_interrupted(const TraceRecord& record) { return record.faulted && record.error == EINTR; }

// The file's bytes as far as they are known at that record: what was there and what was written.
std::uint64_t known_size(const Life& life, const TraceRecord& until) {
  std::uint64_t size = 0;
  for (const FileEntry& entry : life.record.tree_before) {
    if (entry.path == until.path) size = entry.size;
  }
  for (const TraceRecord& record : life.trace.records) {
    if (record.end_seq > until.end_seq) break;
    if (is_write(record) && record.error == 0 && record.path == until.path) {
      size = std::max(size, record.offset + record.returned);
    }
  }
  return size;
}

// The first byte of [from, to) that no later operation of the rank on the file asked for, or `to`.
std::uint64_t continued_to(const Life& life, const TraceRecord& cut, std::uint64_t from,
                           std::uint64_t to) {
  bool grew = true;
  while (grew && from < to) {
    grew = false;
    for (const TraceRecord& record : life.trace.records) {
      if (record.begin_seq < cut.end_seq || record.op != cut.op || record.path != cut.path ||
          record.caller.rank != cut.caller.rank || record.error != 0) {
        continue;
      }
      const std::uint64_t end = record.offset + record.returned;
      if (record.offset <= from && end > from) {
        from = end;
        grew = true;
      }
    }
  }
  return from;
}

// A read that asked for the byte at `from`, even if it only learnt that the file ends there.
bool asked_again(const Life& life, const TraceRecord& cut, std::uint64_t from) {
  return std::any_of(life.trace.records.begin(), life.trace.records.end(),
                     [&](const TraceRecord& record) {
                       return record.begin_seq > cut.end_seq && record.op == cut.op &&
                              record.path == cut.path && record.caller.rank == cut.caller.rank &&
                              record.offset <= from && from < record.offset + record.requested;
                     });
}

// The operation was part of something that this rank calls a success.
bool called_success(const View& view, const Life& life, const TraceRecord& record) {
  // Of what a silent program reads it is not known how much it wants.
  if (is_black_box(view.evidence()))
    return is_write(record) && ended_well(life, record.caller.rank);
  for (const SaveGroup& group : view.groups()) {
    const SaveCall* call = group.life == &life ? group.call_of(record.caller.rank) : nullptr;
    // The rank's own call: another rank may still be in the save before it.
    if (call == nullptr || record.begin_ns < call->begin->time_ns) continue;
    const bool open = call->state == CallState::kUnfinished || call->last() == nullptr;
    if (!open && record.begin_ns > call->last()->time_ns) continue;
    return call->state == CallState::kSucceeded;
  }
  const Event* resumed = resumed_event(life, record.caller.rank);
  return resumed != nullptr && resumed->ok && record.end_ns <= resumed->time_ns;
}

// Every rank holds what was saved: what was not read again was read ahead, and was not needed.
bool restored_what_was_saved(const View& view, const Life& life, int rank) {
  const Event* resumed = resumed_event(life, rank);
  if (resumed == nullptr || !resumed->step) return false;
  const auto comparison = compare_with_writers(view, *resumed->step, life.record.started_ns,
                                               restored_items(life, *resumed->step));
  return comparison && comparison->compared > 0 && comparison->equal();
}

bool is_continued(const Life& life, const TraceRecord& record) {
  const std::uint64_t from = record.offset + (record.error == 0 ? record.returned : 0);
  if (!is_write(record)) return asked_again(life, record, from);
  const std::uint64_t to = record.offset + record.requested;
  return continued_to(life, record, from, to) >= to;
}

}  // namespace

reports::Verdict short_io_continued(const Evidence& evidence) {
  const View view(evidence);
  std::size_t cuts = 0;
  std::vector<std::string> lines;
  for (const Life& life : evidence.lives) {
    for (const TraceRecord& record : life.trace.records) {
      if (!is_write(record) && record.op != Op::kRead) continue;
      if (!is_short(record) && !was_interrupted(record)) continue;
      if (!is_write(record) && record.error == 0 &&
          record.offset + record.returned >= known_size(life, record)) {
        continue;  // the file ends there anyway
      }
      ++cuts;
      if (!called_success(view, life, record) || is_continued(life, record)) continue;
      if (!is_write(record) && restored_what_was_saved(view, life, record.caller.rank)) continue;
      lines.push_back(quote(life, record));
    }
  }
  if (!lines.empty()) {
    std::string summary = fmt::format(
        "{} short or interrupted operations were not continued, and the save or load was called a "
        "success",
        lines.size());
    return violated("F4", std::move(summary), std::move(lines));
  }
  if (cuts == 0) return skip("F4", "no operation was short or interrupted");
  return pass("F4",
              fmt::format("{} short or interrupted operations, each continued or reported", cuts));
}

}  // namespace savegate::harness
