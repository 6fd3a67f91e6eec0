// A neighbour's process (gpu/neighbour.h), asked line by line over pipes.
//
//   SAVEGATE_TRY(auto neighbour, NeighbourProcess::start(program, "cuda", rank));
//   SAVEGATE_TRY(std::uint64_t wakeable, neighbour.ask("probe"));
//
// It ends with this object, or with this process. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "faults/status.h"

namespace savegate::worker {

class NeighbourProcess {
 public:
  // On the device that this rank has under that name. `more_environment` is added to this
  // process's, "NAME=value".
  static Result<NeighbourProcess> start(const std::string& program, const std::string& device,
                                        int rank, const std::string& more_environment = "");
  NeighbourProcess(NeighbourProcess&& other) noexcept;
  NeighbourProcess& operator=(NeighbourProcess&&) = delete;
  ~NeighbourProcess();

  // Bytes, as gpu/neighbour_main.cc says.
  Result<std::uint64_t> ask(const std::string& command);

 private:
  NeighbourProcess(pid_t pid, int input, int output) : pid_(pid), input_(input), output_(output) {}
  Result<std::string> read_line();

  pid_t pid_;
  int input_;   // its standard input
  int output_;  // its standard output
};

}  // namespace savegate::worker
