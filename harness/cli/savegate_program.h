// For tests: the built `savegate`, with a store of its own, and what it leaves behind.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace savegate::cli {

struct Ran {
  int status = -1;     // exit status, or 128 + signal
  std::string output;  // stdout and stderr
};

class SavegateProgram {
 public:
  SavegateProgram();
  ~SavegateProgram();
  SavegateProgram(const SavegateProgram&) = delete;
  SavegateProgram& operator=(const SavegateProgram&) = delete;

  // "" where this machine can run it, else the reason for a skip.
  static std::string why_not();

  Ran run(const std::string& arguments) const;  // `--store` is added for those that run scenarios
  Ran shell(const std::string& command) const;
  // Sends `signal` at a random moment of the run, drawn from the seed: to savegate itself, or to
  // its first process whose name is `process`.
  Ran run_and_signal(const std::string& arguments, int signal, std::uint64_t seed,
                     const std::string& process = "savegate") const;

  // Processes that still hold this store in their arguments or environment, a line each.
  std::string processes() const;
  // The same, once those that are about to end have had the time to: what really stays.
  std::string processes_left() const;

  const std::string& folder() const { return folder_; }
  std::string store() const { return folder_ + "/store"; }
  std::string bin() const;

 private:
  std::string command_line(const std::string& arguments) const;
  std::string folder_;
};

}  // namespace savegate::cli
