#include "fusefs/attribution.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>

namespace savegate::fusefs {

namespace {

constexpr std::size_t kMaxThreads = 4096;  // kept, each with a descriptor
constexpr int kMaxAncestors = 64;

std::string executable(int proc_fd, const char* name = "exe") {
  std::array<char, 512> link;
  ssize_t length = ::readlinkat(proc_fd, name, link.data(), link.size());
  return length < 0 ? std::string() : std::string(link.data(), static_cast<std::size_t>(length));
}

std::string executable_of(pid_t pid) {
  return executable(AT_FDCWD, fmt::format("/proc/{}/exe", pid).c_str());
}

}  // namespace

Attributed attribute(pid_t tid, pid_t stop_at, const ProcessSource& source) {
  Attributed found;
  auto status = source.status(tid);
  if (!status) return found;
  found.pid = status->tgid;

  pid_t pid = status->tgid;
  for (int depth = 0; depth < kMaxAncestors && pid > 1 && pid != stop_at; depth++) {
    auto rank = source.rank(pid);
    if (rank && (found.rank < 0 || *rank == found.rank)) {
      found.rank = *rank;
      found.root = pid;
    } else if (found.rank >= 0) {
      break;  // the rank's own process was the one below
    }
    auto parent = source.status(pid);
    if (!parent) break;
    pid = parent->ppid;
  }
  if (found.rank < 0) return found;
  if (found.root != found.pid) {
    found.relation = faults::Relation::kChild;
  } else {
    found.relation = tid == found.pid ? faults::Relation::kProcess : faults::Relation::kThread;
  }
  return found;
}

struct Attribution::Cached {
  Cached(int fd, std::string program, faults::Caller who)
      : proc_fd(fd), exe(std::move(program)), caller(who) {}
  Cached(const Cached&) = delete;
  Cached& operator=(const Cached&) = delete;
  ~Cached() { ::close(proc_fd); }
  bool holds() const {
    std::array<char, 512> link;
    ssize_t length = ::readlinkat(proc_fd, "exe", link.data(), link.size());
    // While it exits a thread has no program any more; it is still the same.
    if (length <= 0) return lives();
    return std::string_view(link.data(), static_cast<std::size_t>(length)) == exe;
  }

  bool lives() const { return ::faccessat(proc_fd, "stat", F_OK, 0) == 0; }

  const int proc_fd;  // /proc/<tid>
  const std::string exe;
  const faults::Caller caller;
};

Attribution::Attribution(pid_t stop_at) : stop_at_(stop_at) {}
Attribution::~Attribution() = default;

std::shared_ptr<const Attribution::Cached> Attribution::cached(pid_t tid) const {
  std::shared_lock lock(mutex_);
  const auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : found->second;
}

std::optional<int> Attribution::member_rank(pid_t pid) const {
  std::shared_lock lock(mutex_);
  const auto found = members_.find(pid);
  return found == members_.end() ? std::nullopt : std::optional(found->second.rank);
}

// As its environment says, which a process whose program is still the same need not be asked again.
std::optional<int> Attribution::rank_of(pid_t pid) const {
  std::optional<Member> known;
  {
    std::shared_lock lock(mutex_);
    if (auto found = members_.find(pid); found != members_.end()) known = found->second;
  }
  if (known && !known->exe.empty() && known->exe == executable_of(pid) &&
      start_ticks(pid) == known->start_ticks) {
    return known->rank;
  }
  return process_rank(pid);
}

faults::Caller Attribution::caller(pid_t tid) {
  if (tid <= 0) return {};
  if (const auto known = cached(tid); known && known->holds()) return known->caller;

  int proc_fd = ::open(fmt::format("/proc/{}", tid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc_fd < 0) return {.rank = -1, .relation = faults::Relation::kNone, .pid = tid, .tid = tid};
  std::string exe = executable(proc_fd);
  Attributed found =
      attribute(tid, stop_at_,
                {.status = process_status, .rank = [this](pid_t pid) { return rank_of(pid); }});
  const Known how = found.rank < 0 ? Known::kByItsWord : Known::kByEnvironment;
  if (found.rank < 0) recall(tid, found);
  faults::Caller caller{found.rank, found.relation, found.pid, tid};
  auto fresh = std::make_shared<const Cached>(proc_fd, std::move(exe), caller);
  remember(found, how);
  std::unordered_map<pid_t, std::shared_ptr<const Cached>> dropped;  // closed after the lock
  std::unique_lock lock(mutex_);
  if (threads_.size() >= kMaxThreads) dropped.swap(threads_);
  const auto old = std::exchange(threads_[tid], std::move(fresh));
  lock.unlock();
  return caller;
}

// Of the process itself only its status is read: all that names its program waits for the exec's
// end. Nothing is kept, as the program that begins then may be of another rank.
faults::Caller Attribution::closer(pid_t tid) {
  if (tid <= 0) return {};
  if (const auto known = cached(tid); known && known->lives()) return known->caller;
  const auto status = process_status(tid);
  const pid_t pid = status ? status->tgid : tid;
  const Attributed found =
      attribute(tid, stop_at_, {.status = process_status, .rank = [this, pid](pid_t asked) {
                                  return asked == pid ? member_rank(pid) : rank_of(asked);
                                }});
  return {found.rank, found.relation, pid, tid};
}

faults::Caller Attribution::caller_as(pid_t tid, int rank) {
  faults::Caller known = caller(tid);
  if (known.rank == rank || known.pid == 0) return known;
  Attributed named{rank, faults::Relation::kProcess, known.pid, known.pid};
  remember(named, Known::kByItsWord);
  faults::Caller caller{rank, faults::Relation::kProcess, known.pid, tid};
  int proc_fd = ::open(fmt::format("/proc/{}", tid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (proc_fd < 0) return caller;
  auto fresh = std::make_shared<const Cached>(proc_fd, executable(proc_fd), caller);
  std::unique_lock lock(mutex_);
  auto old = std::exchange(threads_[tid], std::move(fresh));
  lock.unlock();
  return caller;
}

// A process that was known by its environment or by its own word, and whose environment does not
// say so (any more: it is exiting).
void Attribution::recall(pid_t tid, Attributed& found) const {
  const auto start = start_ticks(found.pid);
  std::shared_lock lock(mutex_);
  auto member = members_.find(found.pid);
  if (member == members_.end() || !start || member->second.start_ticks != *start) return;
  found.rank = member->second.rank;
  found.root = member->second.root;
  if (found.root != found.pid) {
    found.relation = faults::Relation::kChild;
  } else {
    found.relation = tid == found.pid ? faults::Relation::kProcess : faults::Relation::kThread;
  }
}

void Attribution::remember(const Attributed& found, Known how) {
  if (found.rank < 0) return;
  for (const pid_t pid : {found.pid, found.root}) {
    const auto start = start_ticks(pid);
    if (!start) continue;
    keep(pid, {.start_ticks = *start,
               .rank = found.rank,
               .root = found.root,
               // Of the rank's own process: what others are of, their parents may have said.
               .exe = how == Known::kByEnvironment && pid == found.root ? executable_of(pid)
                                                                        : std::string()});
    if (found.root == found.pid) break;
  }
}

void Attribution::keep(pid_t pid, Member member) {
  std::unique_lock lock(mutex_);
  Member& known = members_[pid];
  // Its own word takes nothing from what its environment says too.
  if (member.exe.empty() && known.start_ticks == member.start_ticks && known.rank == member.rank) {
    member.exe = std::move(known.exe);
  }
  known = std::move(member);
}

std::vector<Attribution::Process> Attribution::targets(const faults::Caller& caller,
                                                       faults::KillTarget target) const {
  std::map<pid_t, std::uint64_t> wanted;  // by their identity
  std::vector<pid_t> roots;
  std::shared_lock lock(mutex_);
  for (const auto& [pid, member] : members_) {
    const bool meant = target == faults::KillTarget::kJob ||
                       (target == faults::KillTarget::kRank && member.rank == caller.rank);
    if (!meant || start_ticks(pid) != member.start_ticks) continue;
    wanted.emplace(pid, member.start_ticks);
    roots.push_back(pid);
  }
  const auto members = members_;
  lock.unlock();
  // Those that never used the mount belong to the rank too.
  if (!roots.empty()) {
    for (pid_t pid : descendants(roots)) {
      if (members.contains(pid)) continue;
      if (auto start = start_ticks(pid)) wanted.emplace(pid, *start);
    }
  }
  std::vector<Process> processes;
  processes.reserve(wanted.size() + 1);
  for (const auto& [pid, start] : wanted) processes.push_back({pid, start});
  // A caller without a rank is its own target; so is a child.
  if (processes.empty() && caller.pid > 0 &&
      (target == faults::KillTarget::kChild || caller.rank < 0)) {
    if (auto start = start_ticks(caller.pid)) processes.push_back({caller.pid, *start});
  }
  return processes;
}

int send_signal(const std::vector<Attribution::Process>& targets, int signal) {
  int first_error = 0;
  for (const auto& target : targets) {
    int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, target.pid, 0));
    int error = pidfd < 0 ? errno : 0;
    if (pidfd >= 0) {
      bool same = start_ticks(target.pid) == target.start_ticks;
      if (same && ::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0) error = errno;
      ::close(pidfd);
    }
    if (error != 0 && error != ESRCH && first_error == 0) first_error = error;
  }
  return first_error;
}

}  // namespace savegate::fusefs
