// The trace: every file operation, phase mark and collective of a life, in one file.
//
// begin_seq and end_seq are two ticks of one counter, so that "A was complete before B began" is
// a.end_seq < b.begin_seq, whatever the clocks say. Records appear in order of end_seq. The format
// is binary, versioned and append-only; a file cut anywhere reads up to its last whole record, and
// the reader says that it was cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/operation.h"
#include "faults/status.h"

namespace savegate::faults {

struct TraceRecord {
  std::uint64_t begin_seq = 0;
  std::uint64_t end_seq = 0;
  std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t end_ns = 0;
  Op op = Op::kLookup;
  Caller caller;
  std::string path;
  std::string path2;  // new name; symlink target; a mark: its name (path is its kind)
  std::string phase;  // of the caller when the operation began
  int attempt = 0;
  FileId file = 0;
  std::uint64_t offset = 0;
  std::uint64_t requested = 0;
  std::uint64_t returned = 0;   // bytes that the caller was told
  std::uint64_t effective = 0;  // bytes that reached the backing file (differs when the mount lies)
  int error = 0;                // errno told to the caller
  std::uint32_t flags = 0;      // open(2) flags of open and create; 1 for fsync: data only
  bool faulted = false;         // a rule or budget acted on it
};

class TraceWriter {
 public:
  // A new file; one that is there already is never overwritten (EEXIST).
  static Result<std::unique_ptr<TraceWriter>> create(const std::string& path);
  ~TraceWriter();
  // Next tick. Thread-safe.
  std::uint64_t tick();
  // Thread-safe; reaches the file within a bounded delay, and at once on flush(). A failed write of
  // the trace itself is kept and returned by flush(): the run is then INVALID.
  void append(const TraceRecord& record);
  Result<void> flush();

 private:
  struct Impl;
  explicit TraceWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Trace {
  std::vector<TraceRecord> records;
  bool cut = false;  // the file ended within a record
};
Result<Trace> read_trace(const std::string& path);

}  // namespace savegate::faults
