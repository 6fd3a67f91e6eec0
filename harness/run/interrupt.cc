#include "harness/run/interrupt.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>

namespace savegate::harness {
namespace {

std::atomic<bool> seen{false};
std::atomic<int> event_fd{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int) {
  const int saved_errno = errno;
  seen.store(true);
  const std::uint64_t one = 1;
  // The flag is set already; a full counter is as readable as one more.
  [[maybe_unused]] const ssize_t put = ::write(event_fd.load(), &one, sizeof one);
  errno = saved_errno;
}

}  // namespace

Result<void> watch_interrupts() {
  if (event_fd.load() >= 0) return {};
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return fail(system_error("eventfd", ""));
  event_fd.store(fd);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (::sigaction(signal, &action, nullptr) != 0) return fail(system_error("sigaction", ""));
  }
  return {};
}

bool interrupted() { return seen.load(); }
int interrupt_fd() { return event_fd.load(); }

}  // namespace savegate::harness
