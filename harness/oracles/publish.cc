#include "harness/oracles/publish.h"

#include <fcntl.h>

namespace savegate::harness {

using faults::Op;
using faults::TraceRecord;

PublishedFiles::PublishedFiles(const View& view, const Life& life) : view_(view), life_(life) {
  for (const TraceRecord& record : life.trace.records) {
    if (record.error == 0) replay(record);
  }
}

void PublishedFiles::replay(const TraceRecord& record) {
  switch (record.op) {
    case Op::kCreate:
    case Op::kMknod: {
      TracedFile* file = new_file(record.path);
      file->named = &record;
      file->synchronous = (record.flags & O_DSYNC) != 0;
      published(record.path, record, file, /*in_place=*/true);
      break;
    }
    case Op::kOpen:
      if ((record.flags & O_DSYNC) != 0) file_at(record.path)->synchronous = true;
      if ((record.flags & O_TRUNC) != 0) changed(record);
      break;
    case Op::kWrite:
    case Op::kTruncate:
    case Op::kFallocate:
    case Op::kCopyFileRange:  // its first name is the destination
      changed(record);
      break;
    case Op::kFsync:
      file_at(record.path)->syncs.push_back(&record);
      break;
    case Op::kRename:
      renamed(record);
      break;
    case Op::kLink: {
      TracedFile* file = file_at(record.path);
      names_[record.path2] = file;
      file->named = &record;
      published(record.path2, record, file, /*in_place=*/false);
      break;
    }
    case Op::kSymlink: {
      TracedFile* file = new_file(record.path);
      file->named = &record;
      file->link = true;
      published(record.path, record, file, /*in_place=*/false);
      break;
    }
    case Op::kUnlink:
      names_.erase(record.path);
      break;
    default:
      break;
  }
}

void PublishedFiles::changed(const TraceRecord& record) {
  TracedFile* file = file_at(record.path);
  file->writes.push_back(&record);
  const faults::Classified& name = classified(record.path);
  if (name.role == faults::Role::kNone || name.temporary) return;
  for (const Publication& known : publications_) {
    if (known.file == file && known.in_place) return;
  }
  published(record.path, record, file, /*in_place=*/true);
}

void PublishedFiles::renamed(const TraceRecord& record) {
  const std::string inside = record.path + "/";
  std::vector<std::pair<std::string, TracedFile*>> moved;
  for (auto at = names_.lower_bound(inside); at != names_.end() && at->first.starts_with(inside);
       at = names_.erase(at)) {
    moved.emplace_back(at->first, at->second);
  }
  for (const auto& [old_path, file] : moved) {
    const std::string path = record.path2 + "/" + old_path.substr(inside.size());
    names_[path] = file;
    if (!classified(old_path).temporary) continue;
    const TraceRecord* named = file->named;
    const std::size_t before = publications_.size();
    published(path, record, file, /*in_place=*/false);
    if (publications_.size() == before) continue;
    publications_.back().named_before = named;
    publications_.back().directory_before = parent_of(old_path);
  }
  if (!moved.empty()) return;

  TracedFile* file = file_at(record.path);
  names_.erase(record.path);
  names_[record.path2] = file;
  file->named = &record;
  published(record.path2, record, file, /*in_place=*/false);
}

void PublishedFiles::published(const std::string& path, const TraceRecord& record, TracedFile* file,
                               bool in_place) {
  const faults::Classified& name = classified(path);
  if (name.role == faults::Role::kNone || name.temporary) return;
  publications_.push_back({.path = path,
                           .role = name.role,
                           .step = view_.step_of(path),
                           .record = &record,
                           .file = file,
                           .in_place = in_place,
                           .directory_before = {}});
}

TracedFile* PublishedFiles::file_at(const std::string& path) {
  const auto known = names_.find(path);
  return known == names_.end() ? new_file(path) : known->second;
}

TracedFile* PublishedFiles::new_file(const std::string& path) {
  files_.emplace_back();
  return names_[path] = &files_.back();
}

const faults::Classified& PublishedFiles::classified(const std::string& path) {
  auto known = classified_.find(path);
  if (known == classified_.end()) known = classified_.emplace(path, view_.classify(path)).first;
  return known->second;
}

const TraceRecord* PublishedFiles::directory_sync(const std::string& directory, std::uint64_t after,
                                                  std::uint64_t before) const {
  for (const TraceRecord& record : life_.trace.records) {
    if (record.op == Op::kFsyncdir && record.error == 0 && record.path == directory &&
        record.begin_seq > after && record.end_seq < before) {
      return &record;
    }
  }
  return nullptr;
}

}  // namespace savegate::harness
