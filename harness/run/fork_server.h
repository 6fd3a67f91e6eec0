// A fork server: a program that has done its imports once and forks a rank on demand.
//
// The program runs up to savegate_hook.fork_point() and stays there. What it forks has the
// sandbox's pid 1, this runner, for its parent, so that it is watched and waited for like any other
// process. Only within a sandbox.
//
//   ForkServers servers(log_directory);
//   SAVEGATE_TRY(Process process, servers.spawn(request));   // as Process::spawn, milliseconds
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/run/process.h"

namespace savegate::harness {

class ForkServer {
 public:
  static Result<std::unique_ptr<ForkServer>> start(const std::vector<std::string>& command,
                                                   const std::vector<std::string>& environment,
                                                   const std::string& log);
  Result<Process> spawn(const SpawnRequest& request);

 private:
  ForkServer(Process process, UniqueFd socket, std::string log)
      : process_(std::move(process)), socket_(std::move(socket)), log_(std::move(log)) {}
  Result<std::string> receive(std::uint64_t within_ns);

  Process process_;
  UniqueFd socket_;
  std::string log_;
  std::mutex mutex_;  // one request at a time
};

// One server a command, started when it is first needed. Thread-safe.
class ForkServers {
 public:
  // `environment`: "NAME=value", of what a rank is told that which all ranks are told alike.
  ForkServers(std::vector<std::string> environment, std::string log_directory)
      : environment_(std::move(environment)), log_directory_(std::move(log_directory)) {}
  Result<Process> spawn(const SpawnRequest& request);

 private:
  const std::vector<std::string> environment_;
  const std::string log_directory_;
  std::mutex mutex_;
  std::map<std::vector<std::string>, std::unique_ptr<ForkServer>> servers_;
};

}  // namespace savegate::harness
