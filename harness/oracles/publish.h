// How files got their final names in a life, replayed from its trace.
//
// A Publication is the moment from which a name of the layout (a shard, marker, pointer or
// auxiliary file that is no temporary one) could be seen: a rename, link or symlink, or, written in
// place, the operation that first made or changed it under that name. The File has the writes and
// syncs that its bytes went through under all of its names.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracles/view.h"

namespace savegate::harness {

struct TracedFile {
  std::vector<const faults::TraceRecord*> writes;  // anything that changed its bytes or size
  std::vector<const faults::TraceRecord*> syncs;   // fsync that reported success
  bool synchronous = false;                        // opened with O_SYNC or O_DSYNC
  bool link = false;                               // symbolic: its target comes with its name
  const faults::TraceRecord* named = nullptr;      // what gave it its newest name in its directory
};

struct Publication {
  std::string path;
  faults::Role role = faults::Role::kNone;
  std::optional<std::int64_t> step;
  const faults::TraceRecord* record = nullptr;
  const TracedFile* file = nullptr;
  bool in_place = false;
  // Where a directory was renamed with the file in it: what named the file in there, and under
  // which name of the directory.
  const faults::TraceRecord* named_before = nullptr;
  std::string directory_before;
};

class PublishedFiles {
 public:
  PublishedFiles(const View& view, const Life& life);

  const std::vector<Publication>& all() const { return publications_; }
  const Life& life() const { return life_; }
  // fsync of the directory that reported success, begun after `after` and ended before `before`.
  const faults::TraceRecord* directory_sync(const std::string& directory, std::uint64_t after,
                                            std::uint64_t before) const;

 private:
  void replay(const faults::TraceRecord& record);
  void changed(const faults::TraceRecord& record);
  void renamed(const faults::TraceRecord& record);
  void published(const std::string& path, const faults::TraceRecord& record, TracedFile* file,
                 bool in_place);
  TracedFile* file_at(const std::string& path);
  TracedFile* new_file(const std::string& path);
  const faults::Classified& classified(const std::string& path);

  const View& view_;
  const Life& life_;
  std::deque<TracedFile> files_;
  std::map<std::string, TracedFile*> names_;
  std::map<std::string, faults::Classified> classified_;
  std::vector<Publication> publications_;
};

}  // namespace savegate::harness
