#include "harness/worker/control_line.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace savegate::worker {

ControlLine& ControlLine::operator=(ControlLine&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

void ControlLine::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<void> ControlLine::connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) {
    return fail(system_error("connect", socket_path, ENAMETOOLONG));
  }
  socket_path.copy(address.sun_path, socket_path.size());
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return fail(system_error("socket", socket_path));
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Status status = system_error("connect", socket_path);
    close();
    return fail(std::move(status));
  }
  return {};
}

Result<void> ControlLine::request(const std::string& json) {
  const std::string line = json + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t part = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail(system_error("send", ""));
    sent += static_cast<std::size_t>(part);
  }
  SAVEGATE_TRY(std::string reply, read_reply());
  if (reply.find("\"ok\":true") == std::string::npos) {
    return fail(internal_error("the daemon refused " + json + ": " + reply));
  }
  return {};
}

// One reply follows each request, so nothing can come after its line.
Result<std::string> ControlLine::read_reply() {
  std::string reply;
  char buffer[512];
  while (reply.empty() || reply.back() != '\n') {
    const ssize_t part = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return fail(system_error("recv", ""));
    if (part == 0) return fail(system_error("recv", "", ECONNRESET));
    reply.append(buffer, static_cast<std::size_t>(part));
  }
  reply.pop_back();
  return reply;
}

}  // namespace savegate::worker
