// One life's savegate-fs: started, asked, stopped, and never left mounted.
//
// Every request has a deadline: a daemon that does not answer is killed, which ends its mount, so
// that the runner never waits for ever.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/run/process.h"
#include "reports/result.h"

namespace savegate::harness {

struct DaemonSpec {
  std::string program;
  std::string backing;
  std::string mount;    // an existing directory
  std::string control;  // socket, at most 107 bytes
  std::string plan;     // files
  std::string layout;
  std::string trace;
  std::string fired;
  std::string log;  // its own stderr
  int life = 1;
};

struct DaemonStatistics {
  std::uint64_t working_operations = 0;  // all but queries: those move a save or a load forward
  std::uint64_t operations = 0;
  std::vector<reports::FiredCount> rules;
};

class Daemon {
 public:
  // Returns once it is mounted and its control socket answers.
  static Result<std::unique_ptr<Daemon>> start(const DaemonSpec& spec);
  ~Daemon();  // stops it if stop() was not called
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  Result<DaemonStatistics> statistics();
  Result<std::uint64_t> release(const std::string& rule);  // how many operations it held
  Result<void> flush();                                    // trace and fired records are on file
  // Flushes, ends it and confirms that nothing is mounted any more. An error also where it had
  // died.
  Result<void> stop();
  // Ends the FUSE connection at once: requests that it holds fail, and their callers can die.
  void abort();

  pid_t pid() const { return process_.pid(); }
  int pidfd() const { return process_.pidfd(); }
  bool died();  // ended without having been told to

 private:
  Daemon(DaemonSpec spec, Process process) : spec_(std::move(spec)), process_(std::move(process)) {}
  Result<std::string> call(const std::string& request);
  Status with_log(Status status) const;
  Result<void> confirm_unmounted() const;

  DaemonSpec spec_;
  Process process_;
  bool stopped_ = false;
  bool silent_ = false;  // gave no answer to `stop`
};

}  // namespace savegate::harness
