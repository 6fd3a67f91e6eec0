// The worker: how a C++ subject tells savegate what it does.
//
// Each call appends one JSON line to SAVEGATE_EVENTS and, where a span begins or ends, sends a mark
// to SAVEGATE_CONTROL, as docs/subject-contract.md says. Without SAVEGATE_EVENTS nothing is written
// and the program runs by itself.
//
//   Worker worker = Worker::from_environment();
//   worker.hello({{"trainer", "1.2"}});
//   worker.resumed({.step = std::nullopt});                       // a fresh start
//   worker.update(1, changed, {{0, 7}});
//   worker.save_begin(1, 1, items);
//   auto saved = save();
//   worker.save_end(1, 1, saved);
//   if (saved) worker.durable(1, 1, saved);
//   worker.done();
//
// An instrument must not change what the program does: a line or a mark that cannot be delivered is
// said once on stderr, and the program goes on. Not thread-safe: a thread that reports has its own.
// A child that was forked after `hello` may use its parent's Worker or its own: its lines carry its
// pid.
// Attempts are counted by the Worker that begins the saves.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "faults/status.h"
#include "harness/worker/control_line.h"

namespace savegate::worker {

// What the runner gave this rank; outside a run, a single rank in the current directory.
struct Environment {
  int rank = 0;
  int world = 1;
  int life = 1;
  std::string directory = ".";  // SAVEGATE_DIR
  std::string events{};         // "" outside a run
  std::string control{};        // "" where no daemon listens
  std::string until{};          // "save 3"
  std::string device = "cpu";
  std::string rendezvous{};  // "" outside a run
  std::string wake_probe{};  // a program; "" where no life asks for its figure
  // The N of `until`; nothing where the program shall run as long as it likes.
  std::optional<int> until_save() const;
};
Environment read_environment();

// One saved or restored object; the fields are those of the contract.
struct Item {
  std::string name;
  std::string kind;
  std::string scope;
  std::string dtype;
  std::vector<std::uint64_t> global_shape;
  std::vector<std::uint64_t> local_shape;
  std::vector<std::uint64_t> offset;
  std::uint64_t bytes = 0;
  std::string digest;
};

struct Resumed {
  std::optional<std::int64_t> step{};  // nothing was restored where absent
  std::string path{};                  // the checkpoint that the program resolved
  std::vector<Item> items{};           // of the restored state
};

using Samples = std::vector<std::pair<std::int64_t, std::int64_t>>;  // [first, last]
using Memory = std::map<std::string, std::optional<std::uint64_t>>;  // absent value: not obtained

class EventLine;

class Worker {
 public:
  explicit Worker(Environment environment);
  static Worker from_environment() { return Worker(read_environment()); }
  Worker(Worker&&) noexcept;
  Worker& operator=(Worker&&) = delete;
  ~Worker();

  const Environment& environment() const { return environment_; }

  void hello(const std::map<std::string, std::string>& versions, std::int64_t pid);
  void hello(const std::map<std::string, std::string>& versions);  // with this process's pid
  void load_begin();
  void resumed(const Resumed& resumed);
  void load_refused(const std::string& path, const Status& error);
  void update(std::int64_t step, bool changed, const Samples& samples);
  // A second save of the same step in this life is attempt 2, and so on.
  void save_begin(std::int64_t step, int save, const std::vector<Item>& items);
  void save_end(std::int64_t step, int save, const Result<void>& saved);
  void durable(std::int64_t step, int save, const Result<void>& saved);
  void exported(std::int64_t step, const std::string& digest);
  void memory(std::int64_t step, const std::string& phase, const Memory& facts);
  void collective_enter(const std::string& communicator, std::uint64_t number,
                        const std::string& kind);
  void collective_exit(const std::string& communicator, std::uint64_t number,
                       const std::string& kind);
  void phase(const std::string& name);
  void done();

 private:
  EventLine begin(const char* event) const;
  void append(const std::string& line);
  void lose_events(const Status& reason);
  void connect_control();
  void mark(const std::string& kind, const std::string& name);
  void end_save(const char* event, std::int64_t step, int save, const Result<void>& saved,
                bool leave);

  Environment environment_;
  int events_ = -1;  // descriptor
  bool events_broken_ = false;
  ControlLine control_;
  pid_t control_process_ = 0;  // that it was connected in
  bool loading_ = false;
  std::map<std::int64_t, int> attempts_;  // by step
};

}  // namespace savegate::worker
