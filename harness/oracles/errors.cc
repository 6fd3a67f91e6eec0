#include "harness/oracles/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "harness/oracles/view.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::Role;
using faults::TraceRecord;
using Lines = std::vector<std::string>;

bool in_window(const SaveGroup& group, const TraceRecord& record) {
  return group.begin_ns <= record.begin_ns && record.begin_ns <= group.end_ns;
}

// Errors after which trying again, or another way, is right.
bool may_be_handled(int error) {
  return error == EINTR || error == EAGAIN || error == EXDEV || error == ENOTSUP || error == ENOSYS;
}

// The errors given by rules during a save, of each rank the first.
std::vector<const TraceRecord*> first_errors(const SaveGroup& group) {
  std::vector<const TraceRecord*> first;
  std::set<int> ranks;
  for (const TraceRecord& record : group.life->trace.records) {
    if (!record.faulted || record.error == 0 || record.caller.rank < 0 || record.op == Op::kPhase ||
        may_be_handled(record.error) || !in_window(group, record)) {
      continue;
    }
    if (ranks.insert(record.caller.rank).second) first.push_back(&record);
  }
  return first;
}

std::set<std::string> components(const View& view, const TraceRecord& record) {
  std::set<std::string> found;
  for (const std::string& path : {record.path, record.path2, view.classify(record.path).final_path,
                                  view.classify(record.path2).final_path}) {
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      if (end > begin) found.insert(path.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return found;
}

// The report speaks of the file, by its final or temporary name, or of a directory on its way.
bool names_path(const View& view, const std::string& reported, const TraceRecord& record) {
  if (reported.empty()) return false;
  if (record.path.empty()) return true;  // the root itself
  const std::set<std::string> known = components(view, record);
  if (known.contains(last_component(reported))) return true;
  // A failing lookup of a directory is met while opening something below it.
  return (reported + "/").find("/" + record.path + "/") != std::string::npos ||
         reported.starts_with(record.path + "/");
}

// What a rank's report does not say of the failure, "" if it says all. A report without a rank is
// of the rank that gives it.
std::string missing(const View& view, int reporter, const EventError& error,
                    const TraceRecord& record) {
  if (error.errno_name != savegate::errno_name(record.error)) {
    return fmt::format("errno {} instead of {}",
                       error.errno_name.empty() ? "not given" : error.errno_name,
                       savegate::errno_name(record.error));
  }
  if (error.rank.value_or(reporter) != record.caller.rank) {
    return error.rank ? fmt::format("rank {} instead of {}", *error.rank, record.caller.rank)
                      : std::string("the rank");
  }
  if (!names_path(view, error.path, record)) return fmt::format("the path, given `{}`", error.path);
  if (record.op != Op::kWrite && record.op != Op::kRead) return "";
  if (!error.offset || !error.requested) return "offset and bytes";
  const bool covers = *error.offset <= record.offset &&
                      record.offset < *error.offset + std::max<std::uint64_t>(*error.requested, 1);
  return covers ? "" : fmt::format("the offset, given {}", *error.offset);
}

// The lines to quote if no rank's report names one of the first failures whole.
Lines unnamed(const View& view, const SaveGroup& group,
              const std::vector<const TraceRecord*>& failures) {
  Lines lines;
  for (const TraceRecord* failure : failures) lines.push_back(quote(*group.life, *failure));
  for (const SaveCall& call : group.calls) {
    for (const Event* event : {call.end, call.durable}) {
      if (event == nullptr || event->ok) continue;
      if (!event->error) {
        lines.push_back(fmt::format("{}: no error given", quote(*group.life, call.rank, *event)));
        continue;
      }
      std::string lack;
      for (const TraceRecord* failure : failures) {
        lack = missing(view, call.rank, *event->error, *failure);
        if (lack.empty()) return {};
      }
      lines.push_back(fmt::format("{}: lacks {}", quote(*group.life, call.rank, *event), lack));
    }
  }
  return lines;
}

bool said_failed(const SaveGroup& group) {
  return std::any_of(group.calls.begin(), group.calls.end(),
                     [](const SaveCall& call) { return call.state == CallState::kFailed; });
}

bool any_success(const SaveGroup& group) {
  return std::any_of(group.calls.begin(), group.calls.end(),
                     [](const SaveCall& call) { return call.state == CallState::kSucceeded; });
}

bool was_writing(const Life& life, const TraceRecord& close) {
  bool writing = false;
  for (const TraceRecord& record : life.trace.records) {
    if (record.begin_seq >= close.begin_seq) continue;
    if (record.file != close.file || record.caller.pid != close.caller.pid) continue;
    if (record.op == Op::kOpen || record.op == Op::kCreate) writing = record.op == Op::kCreate;
    if (record.op == Op::kWrite) writing = true;
  }
  return writing;
}

bool is_final(const View& view, const std::string& path) {
  const faults::Classified name = view.classify(path);
  return name.role != Role::kNone && !name.temporary;
}

// The file's name after the operation, which may have moved it or a directory above it.
std::string moved(const std::string& path, const TraceRecord& record) {
  const bool moves = record.op == Op::kRename || record.op == Op::kLink;
  if (moves && path == record.path) return record.path2;
  if (!moves || !path.starts_with(record.path + "/")) return path;
  return record.path2 + path.substr(record.path.size());
}

// The very file, after its failed fsync or close, has a final name: its bytes are taken for
// durable.
bool was_published_anyway(const View& view, const Life& life, const TraceRecord& failed) {
  std::string path = failed.path;
  for (const TraceRecord& record : life.trace.records) {
    if (record.begin_seq < failed.begin_seq || record.error != 0) continue;
    if ((record.op == Op::kUnlink || record.op == Op::kCreate) && record.path == path) return false;
    path = moved(path, record);
  }
  return is_final(view, path);
}

// In the same save its rank made another file after the error, and that one has the final name.
bool was_written_anew(const View& view, const SaveGroup& group, const TraceRecord& failed) {
  const std::string wanted = view.classify(failed.path).final_path;
  std::optional<std::string> anew;
  for (const TraceRecord& record : group.life->trace.records) {
    if (record.begin_seq < failed.begin_seq || record.error != 0 || !in_window(group, record)) {
      continue;
    }
    if (record.op == Op::kCreate && record.caller.rank == failed.caller.rank &&
        view.classify(record.path).final_path == wanted) {
      anew = record.path;
    } else if (anew) {
      anew = moved(*anew, record);
    }
    if (anew && is_final(view, *anew)) return true;
  }
  return false;
}

// A name was made in the directory since its last good fsync: this one's error matters.
bool had_unsynced_names(const View& view, const Life& life, const TraceRecord& failed) {
  bool unsynced = false;
  for (const TraceRecord& record : life.trace.records) {
    if (record.begin_seq >= failed.begin_seq || record.error != 0) continue;
    const bool names = record.op == Op::kRename || record.op == Op::kLink;
    const std::string& made = names ? record.path2 : record.path;
    if (record.op == Op::kFsyncdir && record.path == failed.path) unsynced = false;
    if ((names || record.op == Op::kCreate || record.op == Op::kMkdir) &&
        parent_of(made) == failed.path) {
      const faults::Classified name = view.classify(made);
      unsynced =
          unsynced || (name.role != Role::kNone && !name.temporary) || record.op == Op::kMkdir;
    }
  }
  return unsynced;
}

bool is_late_error(const TraceRecord& record) {
  return record.faulted && record.error != 0 && !may_be_handled(record.error) &&
         (record.op == Op::kFsync || record.op == Op::kFsyncdir || record.op == Op::kClose ||
          record.op == Op::kRename);
}

// Whether a save of that step may call itself a success after this error.
bool must_fail_the_save(const View& view, const SaveGroup& group, const TraceRecord& record) {
  if (record.op == Op::kFsyncdir) return had_unsynced_names(view, *group.life, record);
  const std::string& subject = record.op == Op::kRename ? record.path2 : record.path;
  const faults::Classified name = view.classify(subject);
  if (name.role == Role::kNone) return false;
  const auto step = view.step_of(name.final_path);
  if (step && *step != group.step) return false;  // of another checkpoint, as in rotation
  if (record.op == Op::kRename) return true;
  if (record.op == Op::kClose && !was_writing(*group.life, record)) return false;
  return was_published_anyway(view, *group.life, record) || !was_written_anew(view, group, record);
}

}  // namespace

reports::Verdict first_error_kept(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  for (const SaveGroup& group : view.groups()) {
    if (!said_failed(group)) continue;
    const auto failures = first_errors(group);
    if (failures.empty()) continue;
    ++judged;
    Lines lines = unnamed(view, group, failures);
    if (lines.empty()) continue;
    return violated("F7",
                    fmt::format("the failed save of step {} does not name its first error {}",
                                group.step, savegate::errno_name(failures.front()->error)),
                    std::move(lines));
  }
  if (judged == 0) return skip("F7", "no save failed on an error that a rule gave");
  return pass("F7", fmt::format("{} failed saves name errno, rank, path and bytes of their first "
                                "error",
                                judged));
}

reports::Verdict late_errors_honoured(const Evidence& evidence) {
  const View view(evidence);
  std::size_t judged = 0;
  Lines lines;
  for (const SaveGroup& group : view.groups()) {
    for (const TraceRecord& record : group.life->trace.records) {
      if (!is_late_error(record) || !in_window(group, record)) continue;
      ++judged;
      if (!any_success(group) || !must_fail_the_save(view, group, record)) continue;
      lines.push_back(quote(*group.life, record));
      for (const SaveCall& call : group.calls) {
        if (call.state == CallState::kSucceeded) {
          lines.push_back(quote(*group.life, call.rank, *call.last()));
        }
      }
    }
  }
  if (!lines.empty()) {
    return violated("F8", "a save is called a success although fsync, close or rename failed in it",
                    std::move(lines));
  }
  if (judged == 0) return skip("F8", "no fsync, close or rename of a save failed");
  return pass("F8", fmt::format("{} errors at fsync, close or rename, each failed its save or was "
                                "of no consequence to it",
                                judged));
}

}  // namespace savegate::harness
