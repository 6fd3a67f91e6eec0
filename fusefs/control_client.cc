#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fusefs/control.h"

namespace savegate::fusefs {

Result<ControlClient> ControlClient::connect(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return fail(system_error("connect", socket_path, ENAMETOOLONG));
  }
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  ControlClient client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.fd_ < 0) return fail(system_error("socket", socket_path));
  if (::connect(client.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(system_error("connect", socket_path));
  }
  return client;
}

ControlClient::ControlClient(ControlClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ControlClient& ControlClient::operator=(ControlClient&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

ControlClient::~ControlClient() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> ControlClient::call(const std::string& request_json) {
  const std::string line = request_json + '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t sent = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EPIPE) break;  // it hung up, and may have said why
    if (sent < 0) return fail(system_error("send", ""));
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string reply;
  std::array<char, 65536> part;
  while (reply.empty() || reply.back() != '\n') {
    const ssize_t got = ::recv(fd_, part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("recv", ""));
    if (got == 0) return fail(system_error("recv", "", ECONNRESET));
    reply.append(part.data(), static_cast<std::size_t>(got));
  }
  reply.pop_back();
  if (reply.starts_with("{\"ok\":false")) return fail(invalid(reply));
  return reply;
}

}  // namespace savegate::fusefs
