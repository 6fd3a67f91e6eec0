#include "fusefs/control_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace savegate::fusefs {

namespace {

constexpr std::size_t kOneTurn = std::size_t{1} << 20;  // bytes received before others are served
constexpr std::chrono::milliseconds kLinger{1000};
constexpr std::uint32_t kReceiving = EPOLLIN | EPOLLRDHUP;

constexpr std::string_view kTooLong =
    "{\"ok\":false,\"error\":\"the line is longer than 16 MiB\"}\n";
constexpr std::string_view kNotYours =
    "{\"ok\":false,\"error\":\"this mount belongs to another user\"}\n";

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(system_error("bind", path, ENAMETOOLONG));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool anyone_listens(const sockaddr_un& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool there =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return there;
}

struct Connection {
  Connection(int socket, pid_t process) : fd(socket), pid(process) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(fd); }

  const int fd;
  const pid_t pid;
  // The server thread's:
  std::string received;
  std::size_t searched = 0;  // bytes of `received` that hold no end of line
  bool half_closed = false;  // the peer sends no more, and may still read
  std::uint32_t watched = kReceiving;
  std::atomic<bool> lingers{false};

  std::mutex mutex;  // below it
  bool busy = false;
  bool gone = false;
  std::string unsent;
  std::function<void()> hangup;
};

}  // namespace

struct ControlServer::Impl : std::enable_shared_from_this<Impl> {
  std::string path;
  Handler handler;
  int listener = -1;
  int epoll = -1;
  int wake = -1;  // eventfd: an answer was given, or the end
  std::atomic<bool> ending{false};
  std::unordered_map<int, std::shared_ptr<Connection>> connections;  // the server thread's
  std::mutex answered_mutex;
  std::deque<std::shared_ptr<Connection>> answered;
  std::thread thread;

  // An answer may still be on its way: whoever gives it holds this object.
  void stop() {
    ending = true;
    wake_up();
    if (thread.joinable()) thread.join();
    if (listener >= 0) ::unlink(path.c_str());
  }

  ~Impl() {
    for (int fd : {listener, epoll, wake}) {
      if (fd >= 0) ::close(fd);
    }
  }

  void wake_up() const {
    const std::uint64_t one = 1;
    while (::write(wake, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  bool watch(int fd) const {
    epoll_event event{};
    event.events = kReceiving;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void watch_for(Connection& connection, std::uint32_t events) const {
    if (connection.watched == events) return;
    connection.watched = events;
    epoll_event event{};
    event.events = events;
    event.data.fd = connection.fd;
    ::epoll_ctl(epoll, EPOLL_CTL_MOD, connection.fd, &event);
  }

  void run() {
    while (!ending) serve(-1);
    const auto deadline = std::chrono::steady_clock::now() + kLinger;
    while (anyone_lingers()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) break;
      serve(static_cast<int>(left.count()));
    }
    while (!connections.empty()) {
      const auto connection = connections.begin()->second;
      drop(connection);
    }
  }

  bool anyone_lingers() const {
    return std::any_of(connections.begin(), connections.end(),
                       [](const auto& entry) { return entry.second->lingers.load(); });
  }

  void serve(int milliseconds) {
    std::array<epoll_event, 64> events;
    const int count =
        ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), milliseconds);
    for (int i = 0; i < count; i++) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const int fd = event.data.fd;
      if (fd == wake) {
        continue_answered();
      } else if (fd == listener) {
        accept_one();
      } else if (auto found = connections.find(fd); found != connections.end()) {
        const auto connection = found->second;  // outlives its removal
        if ((event.events & (EPOLLHUP | EPOLLERR)) != 0) {
          drop(connection);
        } else if ((event.events & EPOLLOUT) != 0) {
          advance(connection);
        } else {
          receive(connection);
        }
      }
    }
  }

  void accept_one() {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    ucred peer{};
    socklen_t length = sizeof peer;
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
    if (!known || (peer.uid != ::geteuid() && peer.uid != 0)) {
      ::send(fd, kNotYours.data(), kNotYours.size(), MSG_NOSIGNAL);
      ::close(fd);
      return;
    }
    auto connection = std::make_shared<Connection>(fd, peer.pid);
    if (watch(fd)) connections.emplace(fd, std::move(connection));
  }

  void receive(const std::shared_ptr<Connection>& connection) {
    std::array<char, 65536> part;
    std::size_t turn = 0;
    while (turn < kOneTurn) {
      const ssize_t got = ::recv(connection->fd, part.data(), part.size(), 0);
      if (got > 0) {
        connection->received.append(part.data(), static_cast<std::size_t>(got));
        turn += static_cast<std::size_t>(got);
      } else if (got == 0) {
        connection->half_closed = true;
        watch_for(*connection, 0);
        break;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR) {
        drop(connection);
        return;
      }
    }
    if (connection->received.size() > kLongestLine) {
      ::send(connection->fd, kTooLong.data(), kTooLong.size(), MSG_NOSIGNAL);
      drop(connection);
      return;
    }
    advance(connection);
  }

  // Sends what is left of the answer, then sees to the next line.
  void advance(const std::shared_ptr<Connection>& connection) {
    bool idle = false;
    bool unsent = false;
    {
      const std::lock_guard lock(connection->mutex);
      if (connection->gone) return;
      send_some(*connection);
      unsent = !connection->unsent.empty();
      idle = !connection->busy && !unsent;
    }
    const std::uint32_t receiving = connection->half_closed ? 0 : kReceiving;
    watch_for(*connection, receiving | (unsent ? std::uint32_t{EPOLLOUT} : 0));
    if (!idle) return;
    std::string& received = connection->received;
    const auto end = received.find('\n', connection->searched);
    connection->searched = end == std::string::npos ? received.size() : 0;
    if (end != std::string::npos) {
      std::string line = received.substr(0, end);
      received.erase(0, end + 1);
      handle(connection, std::move(line));
    } else if (connection->half_closed) {
      drop(connection);
    }
  }

  void handle(const std::shared_ptr<Connection>& connection, std::string line) {
    {
      const std::lock_guard lock(connection->mutex);
      connection->busy = true;
    }
    ControlRequest request;
    request.line = std::move(line);
    request.peer = connection->pid;
    request.reply = [self = shared_from_this(), connection](std::string answer) {
      self->answer(connection, std::move(answer));
    };
    request.gone = [connection] {
      const std::lock_guard lock(connection->mutex);
      return connection->gone;
    };
    request.on_hangup = [connection](std::function<void()> what) {
      std::unique_lock lock(connection->mutex);
      if (connection->busy && !connection->gone) {
        connection->hangup = std::move(what);
        return;
      }
      const bool gone = connection->gone;
      lock.unlock();
      if (gone) what();
    };
    request.linger = [connection] { connection->lingers = true; };
    handler(std::move(request));
  }

  // From any thread.
  void answer(const std::shared_ptr<Connection>& connection, std::string line) {
    line += '\n';
    {
      const std::lock_guard lock(connection->mutex);
      connection->hangup = nullptr;
      connection->unsent = std::move(line);
      if (!connection->gone) send_some(*connection);
      connection->busy = false;
    }
    {
      const std::lock_guard lock(answered_mutex);
      answered.push_back(connection);
    }
    wake_up();
  }

  // As much as the peer takes now. An error is one of a peer that is gone: epoll tells.
  static void send_some(Connection& connection) {
    std::string_view rest = connection.unsent;
    while (!rest.empty()) {
      const ssize_t sent = ::send(connection.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) break;
      rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    connection.unsent.erase(0, connection.unsent.size() - rest.size());
  }

  void continue_answered() {
    std::uint64_t count = 0;
    while (::read(wake, &count, sizeof count) < 0 && errno == EINTR) {
    }
    std::deque<std::shared_ptr<Connection>> ready;
    {
      const std::lock_guard lock(answered_mutex);
      ready.swap(answered);
    }
    for (const auto& connection : ready) advance(connection);
  }

  void drop(const std::shared_ptr<Connection>& connection) {
    std::function<void()> hangup;
    {
      const std::lock_guard lock(connection->mutex);
      connection->gone = true;
      hangup = std::exchange(connection->hangup, nullptr);
    }
    ::epoll_ctl(epoll, EPOLL_CTL_DEL, connection->fd, nullptr);
    ::shutdown(connection->fd, SHUT_RDWR);
    connections.erase(connection->fd);
    if (hangup) hangup();
  }
};

ControlServer::ControlServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
ControlServer::~ControlServer() { impl_->stop(); }

Result<std::unique_ptr<ControlServer>> ControlServer::listen(const std::string& path,
                                                             Handler handler) {
  SAVEGATE_TRY(const sockaddr_un address, address_of(path));
  auto impl = std::make_shared<Impl>();
  impl->path = path;
  impl->handler = std::move(handler);
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode)) {
    if (anyone_listens(address)) {
      return fail(
          unavailable("another savegate-fs listens on this control socket; stop it or "
                      "name another",
                      path, EADDRINUSE));
    }
    ::unlink(path.c_str());
  }
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return fail(system_error("socket", path));
  // The mode is that of the umask at bind; nobody may connect between bind and a later chmod.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0) {
    ::close(listener);
    return fail(system_error("bind", path, error));
  }
  impl->listener = listener;
  if (::listen(listener, SOMAXCONN) != 0) return fail(system_error("listen", path));
  impl->epoll = ::epoll_create1(EPOLL_CLOEXEC);
  impl->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (impl->epoll < 0 || impl->wake < 0 || !impl->watch(impl->wake) || !impl->watch(listener)) {
    return fail(system_error("epoll", path));
  }
  impl->thread = std::thread([raw = impl.get()] { raw->run(); });
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(impl)));
}

}  // namespace savegate::fusefs
