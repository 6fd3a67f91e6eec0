#include "harness/run/proc.h"

#include <dirent.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

std::string proc_file(pid_t pid, const char* name) {
  auto content = read_file("/proc/" + std::to_string(pid) + "/" + name);
  return content ? *content : std::string();  // gone, or not ours to read
}

std::string_view nth_word(std::string_view text, int index) {
  std::size_t at = 0;
  for (int i = 0; i < index; ++i) {
    at = text.find(' ', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  return text.substr(at, text.find(' ', at) - at);
}

template <class T>
T to_number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct NamedCall {
  long number;
  const char* name;
};
constexpr NamedCall kCalls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_pread64, "pread64"},
    {SYS_openat, "openat"},
    {SYS_close, "close"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_futex, "futex"},
    {SYS_ppoll, "ppoll"},
    {SYS_epoll_pwait, "epoll_wait"},
    {SYS_accept4, "accept"},
    {SYS_connect, "connect"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_renameat2, "rename"},
    {SYS_unlinkat, "unlink"},
    {SYS_mkdirat, "mkdir"},
    {SYS_recvfrom, "recv"},
    {SYS_sendto, "send"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_getdents64, "getdents"},
    {SYS_flock, "flock"},
#ifdef SYS_rename
    {SYS_rename, "rename"},
    {SYS_unlink, "unlink"},
    {SYS_mkdir, "mkdir"},
    {SYS_poll, "poll"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_open, "open"},
#endif
};

std::string call_name(std::string_view syscall_file) {
  const std::string_view word = nth_word(syscall_file, 0);
  if (word.empty() || word.substr(0, 7) == "running" || word[0] == '-') return "";
  const long number = to_number<long>(word);
  const auto* found = std::find_if(std::begin(kCalls), std::end(kCalls),
                                   [&](const NamedCall& call) { return call.number == number; });
  return found == std::end(kCalls) ? "system call " + std::to_string(number) : found->name;
}

}  // namespace

std::optional<ProcStat> read_proc_stat(pid_t pid) {
  const std::string text = proc_file(pid, "stat");
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text.size())
    return {};
  const std::string_view rest = std::string_view(text).substr(close + 2);  // from field 3 on
  ProcStat stat;
  stat.pid = pid;
  stat.command = text.substr(open + 1, close - open - 1);
  stat.state = rest[0];
  stat.parent = to_number<pid_t>(nth_word(rest, 1));
  stat.session = to_number<pid_t>(nth_word(rest, 3));
  stat.start_ticks = to_number<std::uint64_t>(nth_word(rest, 19));
  return stat;
}

std::vector<ProcStat> list_processes() {
  std::vector<ProcStat> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return found;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = to_number<pid_t>(entry->d_name);
    if (pid <= 0) continue;
    if (auto stat = read_proc_stat(pid)) found.push_back(std::move(*stat));
  }
  return found;
}

bool environment_has(pid_t pid, std::string_view prefix) {
  const std::string text = '\0' + proc_file(pid, "environ");
  std::string wanted(1, '\0');
  wanted += prefix;
  return text.find(wanted) != std::string::npos;
}

std::string describe_wait(pid_t pid) {
  const auto stat = read_proc_stat(pid);
  if (!stat) return "";
  std::string text = std::string("state ") + stat->state;
  if (const std::string call = call_name(proc_file(pid, "syscall")); !call.empty()) {
    text += ", in " + call;
  }
  const std::string wchan = proc_file(pid, "wchan");
  if (!wchan.empty() && wchan != "0") text += ", at " + wchan;
  std::string stack = proc_file(pid, "stack");
  if (!stack.empty()) {
    while (!stack.empty() && stack.back() == '\n') stack.pop_back();
    std::replace(stack.begin(), stack.end(), '\n', ' ');
    text += ", stack " + stack;
  }
  return text;
}

}  // namespace savegate::harness
