#include "harness/run/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <charconv>
#include <cstring>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

constexpr std::uint64_t kImportLimit = 180 * kSecond;
constexpr std::uint64_t kForkLimit = 20 * kSecond;
constexpr std::size_t kRoom = 16384;  // bytes of environment that a rank's own is written over

struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<SocketPair> make_pair(int type) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(system_error("socketpair", ""));
  return SocketPair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<void> send_request(int socket, const std::string& text, const std::array<int, 3>& passed) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * 3)> room{};
  iovec bytes{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof passed);
  std::memcpy(CMSG_DATA(header), passed.data(), sizeof passed);
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return fail(system_error("sendmsg", ""));
  return {};
}

}  // namespace

Result<std::unique_ptr<ForkServer>> ForkServer::start(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& environment,
                                                      const std::string& log) {
  SAVEGATE_TRY(SocketPair pair, make_pair(SOCK_SEQPACKET));
  const UniqueFd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!output) return fail(system_error("create", log));
  SpawnRequest request;
  request.command = command;
  std::vector<std::string> changes = environment;
  changes.push_back("SAVEGATE_FORK_SERVER=3");
  changes.push_back("SAVEGATE_FORK_SERVER_ROOM=" + std::string(kRoom, '.'));
  request.environment = environment_with(changes);
  request.output = output.get();
  request.passed = pair.theirs.get();
  SAVEGATE_TRY(Process process, Process::spawn(request));
  std::unique_ptr<ForkServer> server(new ForkServer(std::move(process), std::move(pair.ours), log));
  pair.theirs.reset();
  SAVEGATE_TRY(const std::string ready, server->receive(kImportLimit));
  return server;
}

Result<std::string> ForkServer::receive(std::uint64_t within_ns) {
  pollfd waited{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  std::array<char, 64> text{};
  const int seen = ::poll(&waited, 1, static_cast<int>(within_ns / 1'000'000));
  const ssize_t got = seen > 0 ? ::recv(socket_.get(), text.data(), text.size(), 0) : -1;
  if (got > 0) return std::string(text.data(), static_cast<std::size_t>(got));
  const auto said = read_file(log_);
  return fail(unavailable("the program did not come to savegate_hook.fork_point(), or ended there" +
                              (said && !said->empty() ? ": " + said->substr(0, 500) : ""),
                          log_));
}

Result<Process> ForkServer::spawn(const SpawnRequest& request) {
  const std::lock_guard lock(mutex_);
  SAVEGATE_TRY(SocketPair go, make_pair(SOCK_STREAM));
  std::string environment;
  for (const std::string& variable : request.environment) environment += variable + '\0';
  const int errors = request.errors >= 0 ? request.errors : request.output;
  const std::uint64_t started_ns = monotonic_ns();
  SAVEGATE_CHECK(
      send_request(socket_.get(), environment, {request.output, errors, go.theirs.get()}));
  SAVEGATE_TRY(const std::string reply, receive(kForkLimit));
  pid_t pid = 0;
  std::from_chars(reply.data(), reply.data() + reply.size(), pid);
  if (pid <= 0) return fail(internal_error("the fork server answered `" + reply + "`"));
  SAVEGATE_TRY(Process process, Process::adopt(pid, started_ns));
  if (::send(go.ours.get(), "g", 1, MSG_NOSIGNAL) != 1)
    return fail(system_error("send", "to a forked rank"));
  return process;
}

Result<Process> ForkServers::spawn(const SpawnRequest& request) {
  ForkServer* server = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<ForkServer>& known = servers_[request.command];
    if (!known) {
      const std::string log =
          log_directory_ + "/fork-server-" + std::to_string(servers_.size()) + ".log";
      SAVEGATE_TRY(known, ForkServer::start(request.command, environment_, log));
    }
    server = known.get();
  }
  return server->spawn(request);
}

}  // namespace savegate::harness
