// Evidence: everything that an oracle may look at, read from the store and from nowhere else.
//
// One scenario's folder in the store:
//   scenario.json       the resolved scenario (scenario.h)
//   subject.toml        a copy; provenance.json  name → value of what it was bound to (H4)
//   manifest.json       path → {bytes, digest} of every evidence file, written when collected (H5)
//   life-1/life.json    LifeRecord     life-1/plan.toml     the armed plan
//   life-1/memory.jsonl MemoryRecords, what the runner measured of the ranks
//   life-1/fired.jsonl  FiredRecords   life-1/trace.bin     the trace
//   life-1/events/rank-0.jsonl (.lost) life-1/logs/rank-0.log   stdout and stderr, bounded
//   life-1/checkpoints.jsonl           what the subject's reader printed of the tree after the life
//   result.json         the verdicts (reports/result.h); written last, never read by an oracle
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/fired.h"
#include "faults/trace.h"
#include "harness/event.h"
#include "harness/memory_record.h"
#include "harness/scenario.h"
#include "harness/subject.h"
#include "reports/result.h"

namespace savegate::harness {

// What a rank's log holds where its instrument could not write an event; the reason follows.
inline constexpr std::string_view kEventsLost = "savegate: events lost: ";
// Behind the name of the event file: that of the file which says the same, wherever stderr is.
inline constexpr std::string_view kLostSuffix = ".lost";

inline constexpr std::string_view kGuard = "guard";  // begins RankProcess::ended_by

struct RankProcess {
  int rank = 0;
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat: with pid, its identity
  std::uint64_t started_ns = 0;   // CLOCK_MONOTONIC
  std::uint64_t ended_ns = 0;
  std::optional<int> exit_status;  // exactly one of the two is there
  std::optional<int> signal;
  std::uint64_t kill_sent_ns = 0;  // when the runner sent SIGKILL, 0 if it did not
  // "" by itself | "rule" (a kill rule) | "runner: no progress for 30 s" | "guard: the job held" …
  std::string ended_by;
  std::string waiting_in;  // where it was when the runner had to kill it (wchan, syscall), else ""
  std::uint64_t log_bytes = 0;    // printed
  std::uint64_t log_dropped = 0;  // of them beyond the bound
};

struct FileEntry {
  std::string path;  // below the checkpoint root
  char type = 'f';   // f d l
  std::uint64_t size = 0;
  std::string digest;  // of a file: 32 hex digits; of a link: its target
};

// A file beside the checkpoints that a life found: whether it still begins with what it was then.
struct RecordKept {
  std::string path;          // below the checkpoint root
  std::uint64_t bytes = 0;   // before the life, as bytes_to_be_kept() says
  std::string digest;        // of them
  std::string digest_after;  // of as many from its start; "" where there are fewer
};

// One checkpoint on disk as a fresh process of the subject's reader sees it, one JSON line each:
//
//   {"path":"step_2","step":2,"complete":true,"announced":true,"error":"",
//    "items":[[0,{"name":"layer.0.weight","kind":"parameter",…}]]}
struct Checkpoint {
  std::string path;  // below the root
  std::int64_t step = 0;
  bool complete = false;   // by the reader's own full check (sizes, digests, marker)
  bool announced = false;  // the pointer or marker names it
  std::string error;       // why not complete
  std::vector<std::pair<int, Item>> items;  // (saving rank, item), digests of the bytes read
};

struct LifeRecord {
  int number = 1;
  std::uint64_t started_ns = 0;
  std::uint64_t ended_ns = 0;
  std::vector<RankProcess> ranks;
  std::vector<FileEntry> tree_before;  // after tampering, before the launch
  std::vector<FileEntry> tree_after;
  std::vector<std::string>
      tampered;                     // what was changed: "flip step_2/shard-1.safetensors byte 4096"
  std::vector<std::string> hogged;  // devices that were filled: "rank 1: 33554432 bytes left free"
  std::vector<std::string> stray;   // processes of the job still there after the ranks ended
  std::vector<reports::FiredCount> rules;  // as counted by the daemon
  std::string hung;  // "" | "no progress for 30.0 s" | "10.0 s after the first failure"
  std::uint64_t first_failure_ns = 0;  // 0: none seen
  bool daemon_died = false;
  std::string reader_error;  // the reader failed or was not there: "not obtained" and why
  std::uint64_t trace_records = 0;
  std::string directory;            // SAVEGATE_DIR; "": collected by an older version
  std::vector<RecordKept> records;  // Subject::records
};
std::string print_life(const LifeRecord& life);  // JSON
Result<LifeRecord> life_from_json(std::string_view json);
std::string print_checkpoint(const Checkpoint& checkpoint);
Result<Checkpoint> checkpoint_from_json(std::string_view json);

struct Life {
  LifeSpec spec;
  LifeRecord record;
  std::vector<EventLog> events;  // by rank
  // The last that each rank printed: "life-1/logs/rank-0.log: OSError: …"; "" where it is not
  // known.
  std::vector<std::string> last_words;
  std::vector<faults::FiredRecord> fired;
  faults::Trace trace;
  std::vector<Checkpoint> checkpoints;              // after the life
  std::optional<std::vector<MemoryRecord>> memory;  // nothing: collected by an older version
};

// The names that provenance.json must carry (H4). A value that could not be had is "not obtained".
inline constexpr std::string_view kProvenanceNames[] = {"command",
                                                        "command.digest",
                                                        "executable",
                                                        "executable.digest",
                                                        "executable.digest.end",
                                                        "files.digest",
                                                        "git.revision",
                                                        "git.dirty",
                                                        "savegate.version",
                                                        "scenario.digest",
                                                        "plan.digest",
                                                        "seed",
                                                        "kernel",
                                                        "backing.filesystem",
                                                        "backing.options",
                                                        "gpu",
                                                        "driver",
                                                        "cuda",
                                                        "nccl",
                                                        "environment"};

struct Evidence {
  Scenario scenario;
  Subject subject;
  std::map<std::string, std::string> provenance;
  std::vector<Life> lives;  // as many as were run
  std::vector<std::string>
      problems;  // files missing, cut, unreadable, or altered since the manifest
};

Result<Evidence> load_evidence(const std::string& scenario_directory);

// The manifest of all evidence files below the directory (not result.json).
Result<void> write_manifest(const std::string& scenario_directory);

}  // namespace savegate::harness
