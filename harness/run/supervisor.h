// The supervisor: watches the ranks of a life until all have left, and ends them when they do not.
//
// Two deadlines: one counts from the first failure (every rank must have left by then), one from
// the last progress of any rank (a job in which every rank waits and none fails is hung too).
// Progress is a new event, a fired rule, output, or a file operation that does something. When one
// passes, the supervisor notes where each remaining process waits, kills the job, and says so in
// the record.
//
//   Supervisor supervisor(std::move(watch), std::move(ranks));
//   SAVEGATE_TRY(Supervision seen, supervisor.run());
//
// One poll() loop, no threads, no fixed waits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/evidence.h"
#include "harness/memory/guard.h"
#include "harness/memory/sampler.h"
#include "harness/run/bounded_log.h"
#include "harness/run/failure_watch.h"
#include "harness/run/process.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {

inline constexpr int kLauncher = -1;  // in place of a rank: the launcher that starts them all

struct RankView {
  int rank = 0;
  bool running = false;
  std::string state;  // "save_begin, step 2", "held by rule …", "left with exit status 1"
};

struct LifeProgress {
  std::string scenario;
  int life = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t fired = 0;
  std::string until;  // "save 2"
  std::vector<RankView> ranks;
  std::string waits_for;  // "all ranks to leave, 9.2 s left"
};

struct Watch {
  std::string events_directory;
  std::string fired_path;
  int world = 0;
  std::string
      ranks_directory;  // of the launched ranks' records; "": the ranks are its own children
  std::uint64_t within_ns = 0;
  std::uint64_t no_progress_ns = 0;
  std::uint64_t start_ns = 0;  // the same until a rank does more than say hello, where it is more
  // What starts the first deadline beside the abnormal end of a rank.
  bool fault_is_failure = true;   // an error given or a kill done by a rule
  bool report_is_failure = true;  // save_end, durable or resumed with ok = false
  // A rank held by a rule is what the life is about: it is killed once the others have left.
  bool expects_held = false;
  int daemon_pidfd = -1;
  std::function<std::optional<std::uint64_t>()>
      operations;  // file operations so far that did something
  std::function<void(const std::string& rule, int rank)> on_hold;  // a rule holds a rank
  MemorySampler* memory = nullptr;                                 // measures the ranks meanwhile
  MemoryGuard* guard = nullptr;                                    // kills one of them
  std::function<void()> abort_mount;  // frees a rank that SIGKILL did not end
  std::function<void(const LifeProgress&)> progress;
};

struct WatchedRank {
  int rank = 0;
  Process process;
  UniqueFd output;  // read end of its stdout and stderr, non-blocking
  BoundedLog log;
  RankProcess record = {};
  bool running = true;
};

struct Supervision {
  std::vector<RankProcess> ranks;
  std::string hung;
  std::uint64_t first_failure_ns = 0;
  std::vector<std::string> stray;
  bool daemon_died = false;
};

class Supervisor {
 public:
  Supervisor(Watch watch, std::vector<WatchedRank> ranks);
  Result<Supervision> run();

 private:
  Result<void> wait_for_news();
  Result<void> drain(WatchedRank& rank);
  void read_tails();
  void reap();
  void note_sign_of_life();  // output, events or fired records
  void note_progress();
  void note_failure(std::uint64_t time_ns);
  void sample_operations();
  void run_guard();
  void check_deadlines();
  std::uint64_t next_wake_ns() const;
  std::uint64_t no_progress_ns() const;
  void stop_ranks(const std::string& reason);
  bool only_held_ranks_remain() const;
  void kill_launched() const;
  std::vector<RankProcess> finish_launched();
  void note_end(WatchedRank& rank, const ExitStatus& status);
  bool wait_for_ranks(std::uint64_t nanoseconds);
  void end_strays();
  void report_progress();
  RankView view_of(const WatchedRank& rank) const;
  std::string waits_for(std::uint64_t now) const;
  Result<Supervision> finish();

  Watch watch_;
  std::vector<WatchedRank> ranks_;
  FailureWatch failures_;
  UniqueFd inotify_;
  Supervision seen_;
  std::string stopped_because_;  // "" while it did not have to
  std::uint64_t started_ns_;
  std::uint64_t last_progress_ns_;
  bool starting_ = true;
  std::uint64_t next_sample_ns_;
  std::uint64_t last_report_ns_ = 0;
  std::uint64_t last_operations_ = 0;
  std::uint64_t deadline_from_ns_ = 0;  // the failure that the first deadline counts from
  std::size_t running_;
};

}  // namespace savegate::harness
