#include "harness/run/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string_view>

#include "harness/run/files.h"
#include "harness/run/proc.h"

namespace savegate::harness {
namespace {

constexpr int kPassedDescriptor = 3;

class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  // 0 or the errno of the first step that failed.
  int prepare(const SpawnRequest& request) {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    int error = ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (error == 0) error = ::posix_spawnattr_setsigmask(&attributes_, &none);
    if (error == 0) error = ::posix_spawnattr_setsigdefault(&attributes_, &all);
    if (error == 0)
      error = ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0 && request.output >= 0) error = duplicate(request.output, 1);
    const int errors = request.errors >= 0 ? request.errors : request.output;
    if (error == 0 && errors >= 0) error = duplicate(errors, 2);
    if (error == 0 && request.passed >= 0) error = duplicate(request.passed, kPassedDescriptor);
    if (error == 0 && !request.directory.empty()) {
      error = ::posix_spawn_file_actions_addchdir_np(&actions_, request.directory.c_str());
    }
    return error;
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  int duplicate(int from, int to) {
    return ::posix_spawn_file_actions_adddup2(&actions_, from, to);
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

bool is_executable_file(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// Children that a Process waits for.
class Children {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.insert(pid);
  }
  void remove(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.erase(pid);
  }
  bool has(pid_t pid) {
    const std::lock_guard lock(mutex_);
    return pids_.count(pid) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<pid_t> pids_;
};

Children& children() {
  static Children all;
  return all;
}

}  // namespace

void reap_orphans() {
  while (true) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (children().has(ended.si_pid)) return;  // orphans behind it are seen once it was waited for
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

Result<std::string> find_executable(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    return fail(
        unavailable("there is no such program to execute; build or install it, or correct "
                    "the command in subject.toml",
                    name, ENOENT));
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    std::string candidate(rest.substr(0, end));
    candidate += "/" + name;
    if (is_executable_file(candidate)) return candidate;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return fail(
      unavailable("there is no such program in PATH; install it, or correct the command in "
                  "subject.toml",
                  name, ENOENT));
}

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> result = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view inherited(*entry);
    const std::string_view name = inherited.substr(0, inherited.find('=') + 1);
    bool changed = false;
    for (const std::string& change : changes)
      changed = changed || change.compare(0, name.size(), name) == 0;
    if (!changed) result.emplace_back(inherited);
  }
  return result;
}

Result<Process> Process::spawn(const SpawnRequest& request) {
  if (request.command.empty()) return fail(invalid("a command is empty"));
  SAVEGATE_TRY(const std::string executable, find_executable(request.command.front()));
  SpawnSetup setup;
  if (const int error = setup.prepare(request); error != 0) {
    return fail(system_error("prepare to execute", executable, error));
  }
  const auto arguments = pointers(request.command);
  const auto environment = pointers(request.environment);
  Process process;
  process.started_ns_ = monotonic_ns();
  const int error = ::posix_spawn(&process.pid_, executable.c_str(), setup.actions(),
                                  setup.attributes(), arguments.data(), environment.data());
  if (error == EAGAIN || error == ENOMEM) return fail(system_error("execute", executable, error));
  if (error != 0) {
    return fail(
        unavailable("cannot be executed (is its interpreter there, is it for this machine?)",
                    executable, error));
  }
  return adopt(process.pid_, process.started_ns_);
}

Result<Process> Process::adopt(pid_t pid, std::uint64_t started_ns) {
  Process process;
  process.pid_ = pid;
  process.started_ns_ = started_ns;
  children().add(pid);
  process.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.pidfd_) {
    const int open_error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    children().remove(pid);
    return fail(system_error("pidfd_open", std::to_string(pid), open_error));
  }
  process.start_ticks_ = read_start_ticks(pid).value_or(0);
  return process;
}

std::optional<ExitStatus> Process::try_wait() {
  if (status_) return status_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended != pid_) return std::nullopt;
  children().remove(pid_);
  status_ = ExitStatus{};
  if (WIFEXITED(status)) status_->code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) status_->signal = WTERMSIG(status);
  return status_;
}

std::optional<ExitStatus> Process::wait_for(std::uint64_t nanoseconds) {
  const std::uint64_t until = monotonic_ns() + nanoseconds;
  while (true) {
    if (auto status = try_wait()) return status;
    const std::uint64_t now = monotonic_ns();
    if (now >= until) return std::nullopt;
    pollfd ended{.fd = pidfd(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, static_cast<int>((until - now) / 1'000'000 + 1));
  }
}

void Process::kill_group(int signal) const {
  if (status_) return;
  ::kill(-pid_, signal);
  ::kill(pid_, signal);
}

}  // namespace savegate::harness
