// The control socket: one thread, any number of connections, one request at a time on each.
//
// A request is answered by a callback, perhaps much later and from another thread (a held mark),
// and holds up its own connection alone, as does a peer that does not read. Peers are processes of
// the server's own user or root's; others get one refusal. A peer that closes has no more of its
// lines carried out; one that only ends its side (shutdown) still gets its answers. What is said on
// a connection is in control_commands.h.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "faults/status.h"

namespace savegate::fusefs {

struct ControlRequest {
  std::string line;
  pid_t peer = 0;                                        // process that connected
  std::function<void(std::string)> reply;                // one JSON line, without '\n'
  std::function<void(std::function<void()>)> on_hangup;  // what to do if the peer goes before that
  std::function<bool()> gone;
  std::function<void()> linger;  // the server's end waits a moment for this peer to leave first
};

class ControlServer {
 public:
  using Handler = std::function<void(ControlRequest)>;
  static constexpr std::size_t kLongestLine = std::size_t{16} << 20;  // bytes; more is refused
  // The socket has mode 0600; a dead one of the same name is replaced.
  static Result<std::unique_ptr<ControlServer>> listen(const std::string& path, Handler handler);
  ~ControlServer();  // removes the socket
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  struct Impl;
  explicit ControlServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace savegate::fusefs
