#include "harness/oracles/publish_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/oracles/publish.h"

namespace savegate::harness {
namespace {

// The checkpoint root's own name below itself.
std::string shown(const std::string& directory) { return directory.empty() ? "." : directory; }

using faults::Role;
using faults::TraceRecord;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kNever = UINT64_MAX;

// The save whose window the publication lies in; null where the subject tells of no saves.
const SaveGroup* save_of(const View& view, const Life& life, const Publication& publication) {
  return view.group_at(life, publication.record->begin_ns, publication.step);
}

bool same_save(const View& view, const Life& life, const Publication& a, const Publication& b) {
  return save_of(view, life, a) == view.group_at(life, b.record->begin_ns, a.step);
}

bool is_content(Role role) { return role == Role::kShard || role == Role::kAuxiliary; }

// Judges one life's publications against F6.
class OrderJudge {
 public:
  OrderJudge(const View& view, const PublishedFiles& files) : view_(view), files_(files) {}

  void run() {
    const Role announcing = has_marker() ? Role::kMarker : Role::kPointer;
    for (const Publication& publication : files_.all()) {
      if (publication.role == announcing) check_contents(publication);
      if (publication.role == Role::kMarker || publication.role == Role::kPointer) {
        check(publication, limit_of(publication));
      }
    }
  }

  std::size_t checked() const { return checked_; }
  const Lines& lines() const { return lines_; }

 private:
  bool has_marker() const { return !view_.evidence().subject.layout.marker.empty(); }

  bool belongs(const Publication& content, const Publication& announcing) const {
    if (announcing.step && content.step != announcing.step) return false;
    return same_save(view_, files_.life(), content, announcing);
  }

  // Before which operation the publication must be durable; nothing where that moment never came.
  struct Limit {
    std::uint64_t seq = kNever;
    const char* name = "";
  };

  void check_contents(const Publication& announcing) {
    for (const Publication& content : files_.all()) {
      if (!is_content(content.role) || !belongs(content, announcing)) continue;
      // One rename of a directory may have published both.
      check(content, content.record == announcing.record
                         ? limit_of(announcing)
                         : Limit{announcing.record->begin_seq, announcing.role == Role::kMarker
                                                                   ? "before the marker"
                                                                   : "before the pointer"});
    }
  }

  std::optional<Limit> limit_of(const Publication& publication) const {
    if (publication.role == Role::kMarker) {
      for (const Publication& pointer : files_.all()) {
        if (pointer.role == Role::kPointer &&
            pointer.record->begin_seq > publication.record->end_seq &&
            same_save(view_, files_.life(), publication, pointer)) {
          return Limit{pointer.record->begin_seq, "before the pointer"};
        }
      }
    }
    // Last of its save: durable before any rank says so.
    const SaveGroup* group = save_of(view_, files_.life(), publication);
    if (group == nullptr || !view_.succeeded(*group)) return std::nullopt;
    std::uint64_t said_ns = kNever;
    for (const SaveCall& call : group->calls) said_ns = std::min(said_ns, call.last()->time_ns);
    Limit limit{kNever, "before the save was called durable"};
    for (const TraceRecord& record : files_.life().trace.records) {
      if (record.end_ns > said_ns) limit.seq = std::min(limit.seq, record.end_seq);
    }
    return limit;
  }

  void check(const Publication& publication, const std::optional<Limit>& limit) {
    check_bytes(publication);
    if (!limit) return;
    const TraceRecord& record = *publication.record;
    std::string directory = parent_of(publication.path);
    if (publication.named_before != nullptr) {
      if (files_.directory_sync(publication.directory_before, publication.named_before->end_seq,
                                record.begin_seq) == nullptr) {
        add(fmt::format("{}: no fsync of directory `{}` between the file's naming in it and the "
                        "directory's rename",
                        publication.path, shown(publication.directory_before)),
            record);
      }
      directory = parent_of(record.path2);
    }
    if (files_.directory_sync(directory, record.end_seq, limit->seq) == nullptr) {
      add(fmt::format("{}: no fsync of directory `{}` after it got its name and {}",
                      publication.path, shown(directory), limit->name),
          record);
    }
  }

  void check_bytes(const Publication& publication) {
    if (!seen_.insert(&publication).second) return;
    ++checked_;
    const TracedFile& file = *publication.file;
    const TraceRecord& record = *publication.record;
    if (publication.in_place) {
      if (!file.writes.empty()) {
        add(fmt::format("{}: written under its final name", publication.path),
            *file.writes.front());
      }
      return;
    }
    if (file.synchronous || file.link) return;
    std::uint64_t last_write = 0;
    for (const TraceRecord* write : file.writes) last_write = std::max(last_write, write->end_seq);
    const bool synced = std::any_of(file.syncs.begin(), file.syncs.end(), [&](const auto* sync) {
      return sync->begin_seq > last_write && sync->end_seq < record.begin_seq;
    });
    if (!synced) {
      add(fmt::format("{}: no fsync between its last write and its rename", publication.path),
          record);
    }
  }

  void add(const std::string& what, const TraceRecord& record) {
    lines_.push_back(what);
    lines_.push_back(quote(files_.life(), record));
  }

  const View& view_;
  const PublishedFiles& files_;
  std::set<const Publication*> seen_;
  std::size_t checked_ = 0;
  Lines lines_;
};

// What of a file happened in the marker's save, and not before the marker began.
const TraceRecord* late_operation(const View& view, const PublishedFiles& files,
                                  const Publication& content, const Publication& marker) {
  const std::uint64_t begin = marker.record->begin_seq;
  if (content.record != marker.record && content.record->end_seq > begin) return content.record;
  const SaveGroup* save = save_of(view, files.life(), marker);
  const auto is_late = [&](const TraceRecord* record) {
    return record->end_seq > begin && (save == nullptr || record->begin_ns <= save->end_ns);
  };
  for (const TraceRecord* record : content.file->writes) {
    if (is_late(record)) return record;
  }
  for (const TraceRecord* record : content.file->syncs) {
    if (is_late(record)) return record;
  }
  return nullptr;
}

void check_marker(const View& view, const PublishedFiles& files, const Publication& marker,
                  Lines& lines) {
  const Life& life = files.life();
  const SaveGroup* save = save_of(view, life, marker);
  // A pointer's name says of no step: its save does.
  std::optional<std::int64_t> step = marker.step;
  if (!step && save != nullptr) step = save->step;
  std::set<std::string> shards;
  for (const FileEntry& entry : life.record.tree_before) {
    const auto name = view.classify(entry.path);
    if (name.role == Role::kShard && !name.temporary && view.step_of(entry.path) == marker.step) {
      shards.insert(entry.path);
    }
  }
  for (const Publication& content : files.all()) {
    const bool is_another_steps =
        marker.step ? content.step != step : content.step && content.step != step;
    if (!is_content(content.role) || is_another_steps || !same_save(view, life, marker, content)) {
      continue;
    }
    if (const TraceRecord* late = late_operation(view, files, content, marker)) {
      lines.push_back(
          fmt::format("{} was not finished when {} was published", content.path, marker.path));
      lines.push_back(quote(life, *marker.record));
      lines.push_back(quote(life, *late));
    }
    if (content.role == Role::kShard) shards.insert(content.path);
  }
  const std::size_t expected = view.evidence().subject.shards_in(view.world());
  if (marker.step && shards.size() < expected) {
    lines.push_back(
        fmt::format("{} was published with {} of {} shards", marker.path, shards.size(), expected));
    lines.push_back(quote(life, *marker.record));
  }
}

void check_pointer(const View& view, const PublishedFiles& files, const Publication& pointer,
                   Lines& lines) {
  const SaveGroup* save = view.group_at(files.life(), pointer.record->begin_ns);
  if (save == nullptr) return;
  for (const Publication& marker : files.all()) {
    if (marker.role == Role::kMarker && marker.step == save->step &&
        save_of(view, files.life(), marker) == save &&
        marker.record->end_seq < pointer.record->begin_seq) {
      return;
    }
  }
  lines.push_back(
      fmt::format("{} was published before the marker of step {}", pointer.path, save->step));
  lines.push_back(quote(files.life(), *pointer.record));
}

// The save that all ranks had called durable when this came, and that it belongs to: of its step,
// or, of a pointer, the one before. Null in a save, and where the save has published it itself.
const SaveGroup* save_done_before(const View& view, const PublishedFiles& files,
                                  const Publication& publication) {
  const Life& life = files.life();
  const std::uint64_t at_ns = publication.record->begin_ns;
  if (view.group_at(life, at_ns, publication.step) != nullptr) return nullptr;
  const SaveGroup* done = nullptr;
  for (const SaveGroup& group : view.groups()) {
    const bool is_its = !publication.step || group.step == *publication.step;
    if (group.life == &life && is_its && group.end_ns < at_ns &&
        (done == nullptr || group.end_ns > done->end_ns)) {
      done = &group;
    }
  }
  if (done == nullptr || !view.succeeded(*done)) return nullptr;
  for (const Publication& other : files.all()) {
    const bool is_the_same = other.path == publication.path || other.file == publication.file;
    const std::uint64_t other_ns = other.record->begin_ns;
    if (is_the_same && done->begin_ns <= other_ns && other_ns <= done->end_ns) return nullptr;
  }
  return done;
}

// The first of the file's writes under that name after all ranks had called its save durable. What
// the kernel writes back of a mapping comes when it likes.
const TraceRecord* late_write(const View& view, const PublishedFiles& files,
                              const Publication& publication) {
  const SaveGroup* save = save_of(view, files.life(), publication);
  if (save == nullptr || !view.succeeded(*save)) return nullptr;
  for (const TraceRecord* write : publication.file->writes) {
    const bool is_data = write->op == faults::Op::kWrite || write->op == faults::Op::kCopyFileRange;
    if (is_data && write->caller.pid != 0 && write->path == publication.path &&
        write->begin_ns > save->end_ns &&
        view.group_at(files.life(), write->begin_ns, publication.step) == nullptr) {
      return write;
    }
  }
  return nullptr;
}

// Durable means complete: what comes of a checkpoint after all ranks have said so is lost by a
// death in between, and the save with it.
void check_late(const View& view, const PublishedFiles& files, Lines& lines) {
  for (const Publication& publication : files.all()) {
    if (publication.role != Role::kPointer && !publication.step) continue;
    const SaveGroup* save = save_done_before(view, files, publication);
    const TraceRecord* late = publication.record;
    if (save == nullptr) {
      late = publication.step ? late_write(view, files, publication) : nullptr;
      if (late == nullptr) continue;
      save = save_of(view, files.life(), publication);
    }
    lines.push_back(fmt::format("{} was {} after all ranks had called the save of step {} durable",
                                publication.path,
                                late == publication.record ? "published" : "written", save->step));
    for (const SaveCall& call : save->calls) {
      lines.push_back(quote(files.life(), call.rank, *call.last()));
    }
    lines.push_back(quote(files.life(), *late));
  }
}

}  // namespace

reports::Verdict publish_order(const Evidence& evidence) {
  if (!evidence.subject.claims.durable) return skip("F6", "the subject does not claim durability");
  const View view(evidence);
  std::size_t checked = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    const PublishedFiles files(view, life);
    OrderJudge judge(view, files);
    judge.run();
    checked += judge.checked();
    lines.insert(lines.end(), judge.lines().begin(), judge.lines().end());
  }
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("F6", first, std::move(lines));
  }
  if (checked == 0) return skip("F6", "no checkpoint was published in any trace");
  return pass("F6", fmt::format("{} files published: bytes, fsync, rename, directory fsync, in "
                                "this order",
                                checked));
}

reports::Verdict marker_last(const Evidence& evidence) {
  const faults::Layout& layout = evidence.subject.layout;
  const bool has_none = layout.marker.empty() && layout.pointer.empty();
  const View view(evidence);
  const Role announcing = layout.marker.empty() ? Role::kPointer : Role::kMarker;
  std::size_t announced = 0;
  Lines lines;
  for (const Life& life : evidence.lives) {
    const PublishedFiles files(view, life);
    for (const Publication& publication : files.all()) {
      if (publication.role == Role::kMarker || publication.role == Role::kPointer) ++announced;
      if (publication.role == announcing) check_marker(view, files, publication, lines);
      if (publication.role == Role::kPointer && announcing == Role::kMarker) {
        check_pointer(view, files, publication, lines);
      }
    }
    check_late(view, files, lines);
  }
  if (!lines.empty()) {
    const std::string first = lines.front();
    return violated("C2", first, std::move(lines));
  }
  if (has_none) return skip("C2", "the layout names neither marker nor pointer");
  if (announced == 0) return skip("C2", "no marker was published in any trace");
  return pass("C2", fmt::format("{} markers and pointers, each published after all that it vouches "
                                "for, none after its save was called durable",
                                announced));
}

}  // namespace savegate::harness
