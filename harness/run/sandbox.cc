#include "harness/run/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {
namespace {

std::string& directory_of_this_sandbox() {
  static std::string directory;
  return directory;
}

// One fixed directory a user, so that a killed runner leaves nothing that piles up: what is below
// it lives on a tmpfs that only the sandbox sees.
Result<std::string> make_mount_point(uid_t user) {
  const std::string path = user == 0 ? "/run/savegate" : "/tmp/savegate-" + std::to_string(user);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return fail(system_error("mkdir", path));
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return fail(system_error("stat", path));
  if (!S_ISDIR(found.st_mode) || found.st_uid != user) {
    return fail(unavailable("is not a directory of this user: remove it", path));
  }
  return path;
}

Result<void> map_user(uid_t user, gid_t group) {
  SAVEGATE_CHECK(write_file("/proc/self/setgroups", "deny"));
  SAVEGATE_CHECK(write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1\n"));
  return write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1\n");
}

Result<void> mount_or_fail(const char* type, const std::string& where, unsigned long flags,
                           const char* data) {
  if (::mount(type, where.c_str(), type, flags, data) != 0) {
    return fail(
        unavailable("cannot mount in a private namespace; run as root, or in a container "
                    "started with --privileged (or --cap-add SYS_ADMIN)",
                    where, errno));
  }
  return {};
}

struct Owner {
  uid_t user;
  gid_t group;
  bool own_user_namespace;
};

Result<void> set_up_inner(const Owner& owner, const std::string& mount_point) {
  if (owner.own_user_namespace) SAVEGATE_CHECK(map_user(owner.user, owner.group));
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    if (errno == EINVAL)
      return fail(
          unavailable("the root folder is no mount point, as in a plain chroot, so mounts cannot "
                      "be made private; "
                      "before the chroot, do: mount --bind FOLDER FOLDER",
                      "/", EINVAL));
    return fail(system_error("make mounts private", "/"));
  }
  SAVEGATE_CHECK(mount_or_fail("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr));
  SAVEGATE_CHECK(mount_or_fail("tmpfs", mount_point, MS_NOSUID | MS_NODEV, "mode=0700"));
  directory_of_this_sandbox() = mount_point;
  return watch_interrupts();
}

// As fork(), in new namespaces. Plain clone(2): the caller has no other thread.
pid_t fork_with(unsigned long namespaces) {
  return static_cast<pid_t>(::syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0));
}

[[noreturn]] void run_inner(const Owner& owner, const std::string& mount_point, int lifeline,
                            const sigset_t& signals, const std::function<int()>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd outer{.fd = lifeline, .events = 0, .revents = 0};
  // The outer process holds the other end: hung up means that it died before the line above.
  if (::poll(&outer, 1, 0) > 0) ::_exit(5);
  int code = 5;
  if (auto ready = set_up_inner(owner, mount_point); !ready) {
    std::fprintf(stderr, "savegate: %s\n", ready.error().to_string().c_str());
    code = ready.error().code == Code::kUnavailable ? 3 : 5;
  } else {
    ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    code = body();
    if (code == 0 && interrupted()) code = 130;
  }
  std::fflush(nullptr);
  ::_exit(code);
}

Result<int> wait_for(pid_t inner, const sigset_t& forwarded) {
  const UniqueFd signals(::signalfd(-1, &forwarded, SFD_CLOEXEC));
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, inner, 0)));
  if (!signals || !ended) return fail(system_error("pidfd_open", ""));
  pollfd watched[] = {{signals.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
  while (::poll(watched, 2, -1) >= 0 || errno == EINTR) {
    if ((watched[1].revents & POLLIN) != 0) break;
    signalfd_siginfo signal{};
    if ((watched[0].revents & POLLIN) != 0 &&
        ::read(signals.get(), &signal, sizeof signal) == sizeof signal) {
      ::kill(inner, static_cast<int>(signal.ssi_signo));
    }
  }
  int status = 0;
  while (::waitpid(inner, &status, 0) < 0) {
    if (errno != EINTR) return fail(system_error("waitpid", ""));
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(internal_error("the runner was ended by signal " + std::to_string(WTERMSIG(status))));
}

}  // namespace

Result<int> run_in_sandbox(const std::function<int()>& body) {
  const Owner self{::geteuid(), ::getegid(), false};
  SAVEGATE_TRY(const std::string mount_point, make_mount_point(self.user));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("pipe", ""));
  UniqueFd inner_end(ends[0]);
  UniqueFd outer_end(ends[1]);

  sigset_t forwarded;
  sigset_t previous;
  ::sigemptyset(&forwarded);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&forwarded, signal);
  ::sigprocmask(SIG_BLOCK, &forwarded, &previous);
  std::fflush(nullptr);

  Owner owner = self;
  pid_t inner = fork_with(CLONE_NEWPID | CLONE_NEWNS);
  if (inner < 0) {
    owner.own_user_namespace = true;
    inner = fork_with(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS);
  }
  if (inner < 0) {
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &previous, nullptr);
    return fail(
        unavailable("neither root's nor a user's namespaces are permitted here; run as root, "
                    "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                    "kernel.apparmor_restrict_unprivileged_userns=0), or start the container "
                    "with --privileged",
                    "", error));
  }
  if (inner == 0) {
    outer_end.reset();
    run_inner(owner, mount_point, inner_end.get(), previous, body);
  }
  inner_end.reset();
  auto code = wait_for(inner, forwarded);
  ::sigprocmask(SIG_SETMASK, &previous, nullptr);
  return code;
}

const std::string& sandbox_directory() { return directory_of_this_sandbox(); }
bool in_sandbox() { return !directory_of_this_sandbox().empty(); }

}  // namespace savegate::harness
