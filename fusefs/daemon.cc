#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "faults/layout.h"
#include "faults/plan.h"
#include "faults/toml.h"
#include "fusefs/control_commands.h"
#include "fusefs/control_server.h"
#include "fusefs/file_system.h"
#include "fusefs/mount.h"
#include "fusefs/options.h"
#include "fusefs/session.h"

namespace savegate::fusefs {

namespace {

constexpr unsigned kLeastThreads = 8;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    if (in && in.peek() == std::ifstream::traits_type::eof()) return std::string();
    return fail(system_error("read", path));
  }
  return text.str();
}

Result<faults::Plan> load_plan(const std::string& path) {
  if (path.empty()) return faults::Plan{};
  SAVEGATE_TRY(const std::string text, read_file(path));
  SAVEGATE_TRY(faults::Plan plan, faults::parse_plan(text, path));
  SAVEGATE_CHECK(check_plan(plan));
  return plan;
}

Result<faults::Layout> load_layout(const std::string& path) {
  if (path.empty()) return faults::Layout{};
  SAVEGATE_TRY(const std::string text, read_file(path));
  SAVEGATE_TRY(faults::TomlDocument document, faults::parse_toml(text, path));
  auto root = document.root();
  auto table = root.table("layout");
  if (!table) return faults::Layout{};
  faults::Layout layout = faults::read_layout(*table);
  SAVEGATE_CHECK(table->finish());
  return layout;
}

Result<int> open_backing_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) return fd;
  Status status = unavailable("the backing directory must exist", path, errno);
  status.operation = "open";
  return fail(status);
}

// Every inode that the kernel knows and every open file takes a descriptor. Returns how many may
// be.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlim_t most = 0;
  if (std::ifstream("/proc/sys/fs/nr_open") >> most) {
    const rlimit wide{most, std::max(most, limit.rlim_max)};
    if (::setrlimit(RLIMIT_NOFILE, &wide) == 0) return most;
  }
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

Result<void> say_ready(int fd) {
  if (fd < 0) return {};
  constexpr std::string_view kReady = "ready\n";
  while (true) {
    const ssize_t put = ::write(fd, kReady.data(), kReady.size());
    if (put == static_cast<ssize_t>(kReady.size())) return {};
    if (put < 0 && errno == EINTR) continue;
    return fail(system_error("write", fmt::format("ready-fd {}", fd)));
  }
}

void tell(int event_fd) {
  const std::uint64_t one = 1;
  while (::write(event_fd, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

// Reasons to end: a signal, the parent's death, the command or the mount gone.
struct Ends {
  int signals;
  int parent;
  int stop;
};

// Waits for the first reason to end, or for `event_fd`, which says whether it came; -1: none.
Result<bool> came_before_the_end(int event_fd, const Ends& ends) {
  std::array<pollfd, 4> events = {pollfd{event_fd, POLLIN, 0}, pollfd{ends.signals, POLLIN, 0},
                                  pollfd{ends.parent, POLLIN, 0}, pollfd{ends.stop, POLLIN, 0}};
  while (::poll(events.data(), events.size(), -1) < 0) {
    if (errno != EINTR) return fail(system_error("poll", ""));
  }
  return events[0].revents != 0;
}

// Ready once the kernel has said what it can do: what is asked of the mount then is final.
Result<void> serve(int negotiated, int ready_fd, const Ends& ends) {
  SAVEGATE_TRY(const bool ready, came_before_the_end(negotiated, ends));
  if (!ready) return {};
  SAVEGATE_CHECK(say_ready(ready_fd));
  SAVEGATE_CHECK(came_before_the_end(-1, ends));
  return {};
}

template <bool passthrough>
void negotiate(void* userdata, fuse_conn_info* connection) {
  static_cast<FileSystem*>(userdata)->negotiate(connection, passthrough);
}

fuse_lowlevel_ops all_operations(bool passthrough) {
  fuse_lowlevel_ops operations{};
  operations.init = passthrough ? negotiate<true> : negotiate<false>;
  add_data_operations(operations);
  add_name_operations(operations);
  add_attribute_operations(operations);
  add_directory_operations(operations);
  return operations;
}

void drop_pages(fuse_session* session, FileSystem& fs, const Node& node, std::uint64_t offset,
                std::uint64_t length) {
  // Never from within a request: the kernel may hold the pages that it asks about.
  fs.pool.post([session, id = fs.inodes.id(node), offset, length] {
    fuse_lowlevel_notify_inval_inode(session, id, static_cast<off_t>(offset),
                                     static_cast<off_t>(length));
  });
}

}  // namespace

Result<void> run_daemon(const DaemonOptions& options) {
  SAVEGATE_TRY(const faults::Plan plan, load_plan(options.plan));
  SAVEGATE_TRY(faults::Layout layout, load_layout(options.layout));
  SAVEGATE_TRY(const int backing_fd, open_backing_directory(options.backing));

  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);  // before the first thread of ours
  SAVEGATE_TRY(auto recorder, Recorder::create(options.trace, options.fired));
  ::signal(SIGPIPE, SIG_IGN);
  const Descriptor signals(::signalfd(-1, &ending, SFD_CLOEXEC));
  const Descriptor stop(::eventfd(0, EFD_CLOEXEC));
  const Descriptor negotiated(::eventfd(0, EFD_CLOEXEC));
  if (signals.get() < 0 || stop.get() < 0 || negotiated.get() < 0)
    return fail(system_error("signalfd", ""));
  const Descriptor parent(options.parent_pid > 0
                              ? static_cast<int>(::syscall(SYS_pidfd_open, options.parent_pid, 0))
                              : -1);
  if (options.parent_pid > 0 && parent.get() < 0) {
    return fail(system_error("pidfd_open", fmt::format("process {}", options.parent_pid)));
  }
  const std::size_t descriptors = raise_descriptor_limit();
  ::umask(0);

  auto fs = std::make_unique<FileSystem>(plan, std::move(layout), options.life, *recorder,
                                         backing_fd, ::getppid(), descriptors);
  if (const int error = fs->inodes.set_root(::dup(backing_fd)); error != 0) {
    return fail(system_error("stat", options.backing, error));
  }
  const auto end = [fd = stop.get()] { tell(fd); };
  fs->set_negotiated([fd = negotiated.get()] { tell(fd); });
  SAVEGATE_TRY(auto session, Session::mount(all_operations(options.passthrough), fs.get(),
                                            options.mount, options.backing));
  fs->open_files.connect(fuse_session_fd(session->get()));
  fs->flow.set_drop_pages([raw = session->get(), shared = fs.get()](
                              const Node& node, std::uint64_t offset, std::uint64_t length) {
    drop_pages(raw, *shared, node, offset, length);
  });
  std::atomic<bool> overdue{false};
  if (options.hold_limit.count() > 0) {
    fs->stalls.set_limit(options.hold_limit, [&overdue, &end, &options] {
      overdue = true;
      abort_connection(options.mount);  // where it cannot be, unmounting frees what is held
      end();
    });
  }
  ControlCommands commands(*fs, options.mount, end);
  auto control = ControlServer::listen(
      options.control, [&commands](const ControlRequest& request) { commands.handle(request); });
  Result<void> ended;
  if (control) {
    fs->trimmer.start(session->get());
    session->start(std::max(kLeastThreads, 2 * std::thread::hardware_concurrency()), end);
    ended = serve(negotiated.get(), options.ready_fd,
                  {.signals = signals.get(), .parent = parent.get(), .stop = stop.get()});
    if (ended && overdue) {
      ended = fail(unavailable(
          "an operation was held for longer than --hold-limit allows: the mount was aborted",
          options.mount, ETIMEDOUT));
    }
    recorder->no_more_fired();
    control->reset();
  } else {
    ended = fail(control.error());
  }
  if (auto stopped = session->stop(); !stopped && ended) ended = stopped;
  const auto undo = fs->undo;
  fs.reset();  // answers what is still held, while the connection is there
  session.reset();
  if (auto lost = undo->lose(*recorder); !lost && ended) ended = lost;
  if (auto flushed = recorder->flush(); !flushed && ended) ended = flushed;
  return ended;
}

}  // namespace savegate::fusefs
