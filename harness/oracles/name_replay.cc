#include "harness/oracles/name_replay.h"

#include <fcntl.h>

#include <vector>

namespace savegate::harness {
namespace {

using faults::Op;
using faults::TraceRecord;

class Replay {
 public:
  Replay(const Life& life, const NameWatch& watch) : watch_(watch) {
    for (const FileEntry& entry : life.record.tree_before) {
      if (entry.type != 'd') names_.insert(entry.path);
    }
  }

  void play(const TraceRecord& record) {
    switch (record.op) {
      case Op::kCreate:
      case Op::kMknod:
      case Op::kSymlink:
        return tell(NameEvent::kAppears, record.path, record);
      case Op::kLink:
        return tell(NameEvent::kAppears, record.path2, record);
      case Op::kOpen:
        if ((record.flags & O_TRUNC) != 0) tell(NameEvent::kEmptied, record.path, record);
        return;
      case Op::kTruncate:
        return tell(record.offset == 0 ? NameEvent::kEmptied : NameEvent::kChanges, record.path,
                    record);
      case Op::kWrite:
      case Op::kFallocate:
      case Op::kCopyFileRange:  // its first name is the destination
        return tell(NameEvent::kChanges, record.path, record);
      case Op::kUnlink:
        return tell(NameEvent::kGoes, record.path, record);
      case Op::kRename:
        return rename(record);
      default:
        return;
    }
  }

 private:
  void tell(NameEvent event, const std::string& path, const TraceRecord& record) {
    watch_({.event = event, .path = path, .record = &record}, names_);
    if (event == NameEvent::kGoes) {
      names_.erase(path);
    } else {
      names_.insert(path);
    }
  }

  void rename(const TraceRecord& record) {
    const std::string inside = record.path + "/";
    std::vector<std::string> moved;
    for (auto at = names_.lower_bound(inside); at != names_.end() && at->starts_with(inside);
         ++at) {
      moved.push_back(at->substr(inside.size()));
    }
    if (moved.empty()) {
      tell(NameEvent::kGoes, record.path, record);
      tell(NameEvent::kAppears, record.path2, record);
      return;
    }
    for (const std::string& name : moved) tell(NameEvent::kGoes, inside + name, record);
    for (const std::string& name : moved) {
      tell(NameEvent::kAppears, record.path2 + "/" + name, record);
    }
  }

  const NameWatch& watch_;
  std::set<std::string> names_;
};

}  // namespace

void replay_names(const Life& life, const NameWatch& watch) {
  Replay replay(life, watch);
  for (const TraceRecord& record : life.trace.records) {
    if (record.error == 0) replay.play(record);
  }
}

}  // namespace savegate::harness
