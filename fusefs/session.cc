#include "fusefs/session.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "fusefs/mount.h"
#include "fusefs/wire.h"

namespace savegate::fusefs {

namespace {

constexpr unsigned kLargestRequest = 1u << 20;  // bytes; 256 pages is the kernel's limit
constexpr unsigned kBackgroundRequests = 512;
constexpr int kWakeSignal = SIGUSR1;  // a thread in read(2) returns with EINTR
constexpr std::chrono::milliseconds kWakeAgain{5};

fuse_custom_io wire_io() {
  fuse_custom_io io{};  // later versions have more members
  io.writev = wire::write_reply;
  io.read = wire::read_request;
  return io;
}

}  // namespace

void negotiate(fuse_conn_info* connection, unsigned passthrough_depth) {
  connection->max_write = kLargestRequest;
  connection->max_background = kBackgroundRequests;
  // Without ASYNC_DIO libaio and io_uring see short writes as they are and can be killed while
  // held. The kernel keeps the locks: all lockers are on this one mount. No write-back cache, ever:
  // it loses the caller and the error.
  wire::refuse(connection, FUSE_CAP_ASYNC_DIO | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS |
                               FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
                               FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  wire::want(connection, FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS |
                             FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_HANDLE_KILLPRIV);
  wire::negotiate(connection, passthrough_depth);
}

Session::Session(fuse_session* session, std::string mount_point, bool by_helper)
    : session_(session), mount_point_(std::move(mount_point)), by_helper_(by_helper) {}

Result<std::unique_ptr<Session>> Session::mount(const fuse_lowlevel_ops& operations, void* userdata,
                                                const std::string& mount_point,
                                                const std::string& source) {
  SAVEGATE_CHECK(check_mount_point(mount_point));
  const bool by_helper = ::geteuid() != 0;
  const std::string helper_options = fmt::format("default_permissions,fsname={}", source);
  std::array<const char*, 3> words = {"savegate-fs", "-o", helper_options.c_str()};
  fuse_args args = FUSE_ARGS_INIT(by_helper ? 3 : 1, const_cast<char**>(words.data()));
  fuse_session* session = fuse_session_new(&args, &operations, sizeof operations, userdata);
  fuse_opt_free_args(&args);
  if (session == nullptr) return fail(internal_error("libfuse made no session"));

  auto owned = std::unique_ptr<Session>(new Session(session, mount_point, by_helper));
  int fd = -1;
  if (by_helper) {
    if (fuse_session_mount(session, mount_point.c_str()) != 0) {
      return fail(unavailable(
          "fusermount3 could not mount: install the package fuse3 and give access to /dev/fuse",
          mount_point, errno));
    }
    fd = fuse_session_fd(session);
  } else {
    SAVEGATE_TRY(fd, mount_fuse(mount_point, source));
  }
  const fuse_custom_io io = wire_io();
  if (const int result = fuse_session_custom_io(session, &io, fd); result != 0) {
    return fail(system_error("fuse_session_custom_io", mount_point, -result));
  }
  return owned;
}

Session::~Session() {
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  fuse_session_destroy(session_);
}

void Session::start(unsigned threads, std::function<void()> ended) {
  struct sigaction wake {};
  wake.sa_handler = [](int) {};  // without SA_RESTART
  ::sigaction(kWakeSignal, &wake, nullptr);
  ended_ = std::move(ended);
  serving_ = threads;
  for (unsigned i = 0; i < threads; i++) {
    threads_.emplace_back([this] {
      serve();
      std::lock_guard lock(mutex_);
      if (--serving_ == 0) ended_();
      changed_.notify_all();
    });
  }
}

void Session::serve() {
  fuse_buf buffer{};
  while (!stopping_) {
    const int got = fuse_session_receive_buf(session_, &buffer);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) break;  // unmounted
    fuse_session_process_buf(session_, &buffer);
  }
  std::free(buffer.mem);
}

Result<void> Session::stop() {
  Result<void> unmounted;
  if (by_helper_) {
    fuse_session_unmount(session_);
  } else {
    unmounted = unmount(mount_point_);
  }
  stopping_ = true;
  std::unique_lock lock(mutex_);
  while (serving_ > 0) {
    for (auto& thread : threads_) ::pthread_kill(thread.native_handle(), kWakeSignal);
    changed_.wait_for(lock, kWakeAgain);
  }
  return unmounted;
}

}  // namespace savegate::fusefs
