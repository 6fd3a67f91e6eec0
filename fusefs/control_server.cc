#include "fusefs/control_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace savegate::fusefs {

namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // bytes; a peer that sends more is cut

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
  explicit Connection(int socket) : fd(socket) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) pid = peer.pid;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(fd); }

  const int fd;
  pid_t pid = 0;
  std::string received;
  std::mutex mutex;  // below it
  bool busy = false;
  bool gone = false;
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
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.fd = fd;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void run() {
    std::array<epoll_event, 64> events;
    while (!ending) {
      const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; i++) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (fd == wake) {
          continue_answered();
        } else if (fd == listener) {
          accept_one();
        } else if (auto found = connections.find(fd); found != connections.end()) {
          const auto connection = found->second;  // outlives its removal
          receive(connection);
        }
      }
    }
    while (!connections.empty()) {
      const auto connection = connections.begin()->second;
      drop(connection);
    }
  }

  void accept_one() {
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    auto connection = std::make_shared<Connection>(fd);
    if (watch(fd)) connections.emplace(fd, std::move(connection));
  }

  void receive(const std::shared_ptr<Connection>& connection) {
    std::array<char, 65536> part;
    while (true) {
      const ssize_t got = ::recv(connection->fd, part.data(), part.size(), 0);
      if (got > 0) {
        connection->received.append(part.data(), static_cast<std::size_t>(got));
        if (connection->received.size() <= kLongestLine) continue;
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        break;
      }
      drop(connection);
      return;
    }
    handle_next(connection);
  }

  void handle_next(const std::shared_ptr<Connection>& connection) {
    const auto end = connection->received.find('\n');
    if (end == std::string::npos) return;
    {
      std::lock_guard lock(connection->mutex);
      if (connection->busy || connection->gone) return;
      connection->busy = true;
    }
    ControlRequest request;
    request.line = connection->received.substr(0, end);
    connection->received.erase(0, end + 1);
    request.peer = connection->pid;
    request.reply = [self = shared_from_this(), connection](std::string line) {
      self->answer(connection, std::move(line));
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
    handler(std::move(request));
  }

  // From any thread.
  void answer(const std::shared_ptr<Connection>& connection, std::string line) {
    line += '\n';
    {
      std::lock_guard lock(connection->mutex);
      connection->hangup = nullptr;
      if (!connection->gone) send_all(connection->fd, line);
      connection->busy = false;
    }
    {
      std::lock_guard lock(answered_mutex);
      answered.push_back(connection);
    }
    wake_up();
  }

  // A peer that does not read gets no more than its socket holds.
  static void send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        epoll_event ignored{};
        const int writable = ::epoll_create1(EPOLL_CLOEXEC);
        epoll_event event{};
        event.events = EPOLLOUT;
        ::epoll_ctl(writable, EPOLL_CTL_ADD, fd, &event);
        const int ready = ::epoll_wait(writable, &ignored, 1, 1000);
        ::close(writable);
        if (ready > 0) continue;
        ::shutdown(fd, SHUT_RDWR);
      }
      if (sent < 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void continue_answered() {
    std::uint64_t count = 0;
    while (::read(wake, &count, sizeof count) < 0 && errno == EINTR) {
    }
    std::deque<std::shared_ptr<Connection>> ready;
    {
      std::lock_guard lock(answered_mutex);
      ready.swap(answered);
    }
    for (const auto& connection : ready) handle_next(connection);
  }

  void drop(const std::shared_ptr<Connection>& connection) {
    std::function<void()> hangup;
    {
      std::lock_guard lock(connection->mutex);
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
