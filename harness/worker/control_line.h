// The rank's end of the daemon's control socket: a request line out, its reply line in.
//
// The few lines of client that a subject needs, so that it links no file system. Not thread-safe.
#pragma once

#include <string>

#include "faults/status.h"

namespace savegate::worker {

class ControlLine {
 public:
  ControlLine() = default;
  ControlLine(ControlLine&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ControlLine& operator=(ControlLine&& other) noexcept;
  ~ControlLine() { close(); }

  Result<void> connect(const std::string& socket_path);
  bool connected() const { return fd_ >= 0; }
  void close();
  // Waits until the daemon has answered, which may be as long as a rule holds the rank here.
  Result<void> request(const std::string& json);

 private:
  Result<std::string> read_reply();

  int fd_ = -1;
};

}  // namespace savegate::worker
