// Events: what a rank says of itself, one JSON object a line in SAVEGATE_EVENTS.
//
// docs/subject-contract.md is the reference. A line that is no JSON, an unknown event, or one that
// lacks a field it must carry is no evidence: it is kept in EventLog::errors with the line quoted
// and makes the scenario INVALID.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"

namespace savegate::harness {

enum class EventKind : std::uint8_t {
  kHello,
  kResumed,
  kUpdate,
  kSaveBegin,
  kSaveEnd,
  kDurable,
  kExport,
  kMemory,
  kCollectiveEnter,
  kCollectiveExit,
  kPhase,
  kDone,
  kHookError,  // the subject's instrument itself failed
};
// The newest version of the contract; a hello of another one is no evidence.
inline constexpr int kContract = 1;

std::string_view event_name(EventKind kind);  // "save_begin"

// One saved or restored object (H7): its digest says nothing without the rest.
struct Item {
  std::string name;
  std::string kind;   // parameter optimizer scheduler rng counter contract derived
  std::string scope;  // rank replica shard
  std::string dtype;  // "bf16", "f32", "f8_e4m3", "i64", "bytes" …
  std::vector<std::uint64_t> global_shape;
  std::vector<std::uint64_t> local_shape;
  std::vector<std::uint64_t> offset;  // of the local shard in the global shape
  std::uint64_t bytes = 0;
  std::string digest;  // 32 hex digits, tree digest
  bool operator==(const Item&) const = default;
};

// The structured error of save_end, durable and a refused load. Fields that the save path did not
// give are absent.
struct EventError {
  std::string text;
  std::string errno_name;  // "" if not given
  std::optional<int> rank;
  std::string path;
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> requested;
  std::optional<std::uint64_t> returned;
};

// One struct for all kinds; which fields count is said in docs/subject-contract.md.
struct Event {
  EventKind kind = EventKind::kHello;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC, set by the worker
  int rank = -1;
  int attempt = 1;                   // of this step in this life
  std::optional<std::int64_t> step;  // resumed: null means nothing was restored
  std::optional<int> save;           // save_begin, save_end, durable: N of "save N"
  bool ok = true;                    // save_end, durable, resumed
  std::optional<EventError> error;
  std::vector<Item> items;   // resumed, save_begin
  std::string path;          // resumed: the checkpoint path that the program resolved
  std::string name;          // phase; memory: phase that ended; collective: communicator;
                             // hook_error: the call that failed
  std::string collective;    // collective_*: kind ("barrier", "all_gather")
  std::uint64_t number = 0;  // collective_*: its number on that communicator
  bool changed = false;      // update
  std::vector<std::pair<std::int64_t, std::int64_t>> samples;  // update: [first, last] ids
  std::string digest;                                          // export
  int contract = 1;                                            // hello
  int world = 0;                                               // hello
  std::int64_t pid = 0;  // hello; else of a process other than the one that said hello, or 0
  std::string device;    // hello
  std::map<std::string, std::string> versions;  // hello
  // memory: bytes by name; absent or JSON null means not obtained. A 0 is a measured 0.
  std::map<std::string, std::optional<std::uint64_t>> memory;
  int line = 0;  // of the log that it was read from; not written
};

struct EventLog {
  std::vector<Event> events;
  std::vector<std::string> errors;  // "events/rank-1.jsonl:7: no JSON: `…`"
};

Result<Event> parse_event(std::string_view line);
std::string print_event(const Event& event);  // one JSON line, without '\n'
// A file that is missing is an empty log; a last line without '\n' (killed in the middle) is
// dropped and is no error.
EventLog read_events(const std::string& path, const std::string& shown_path);

std::string print_item(const Item& item);  // JSON object
Result<Item> parse_item(std::string_view json);

}  // namespace savegate::harness
