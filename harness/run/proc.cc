#include "harness/run/proc.h"

#include <dirent.h>
#include <sys/syscall.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "harness/run/done_within.h"
#include "harness/run/files.h"

namespace savegate::harness {
namespace {

constexpr std::chrono::seconds kPatience{1};

std::string proc_file(pid_t pid, const char* name) {
  auto content = read_file("/proc/" + std::to_string(pid) + "/" + name);
  return content ? *content : std::string();  // gone, or not ours to read
}

// Of a file that may wait, nothing if it does.
std::optional<std::string> proc_file_in_time(pid_t pid, const char* name) {
  return done_within(kPatience, [pid, name] { return proc_file(pid, name); });
}

// The text behind "Name:" of /proc/N/status, without blanks.
std::string_view status_field(std::string_view status, std::string_view name) {
  const std::size_t at = status.find(name);
  if (at == std::string_view::npos) return {};
  std::string_view line = status.substr(at + name.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
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

std::optional<ProcStatus> read_proc_status(pid_t pid) {
  const std::string text = proc_file(pid, "status");
  const std::string_view state = status_field(text, "\nState:");
  if (state.empty()) return std::nullopt;
  const std::string_view sessions = status_field(text, "\nNSsid:");  // the last is this namespace's
  return ProcStatus{.pid = pid,
                    .command = std::string(status_field(text, "Name:")),
                    .state = state[0],
                    .parent = to_number<pid_t>(status_field(text, "\nPPid:")),
                    .session = to_number<pid_t>(sessions.substr(sessions.rfind('\t') + 1))};
}

std::optional<std::uint64_t> read_start_ticks(pid_t pid) {
  const auto text = proc_file_in_time(pid, "stat");
  const std::size_t close = text ? text->rfind(')') : std::string::npos;
  if (close == std::string::npos || close + 2 >= text->size()) return std::nullopt;
  return to_number<std::uint64_t>(nth_word(std::string_view(*text).substr(close + 2), 19));
}

std::vector<ProcStatus> list_processes() {
  std::vector<ProcStatus> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (!proc) return found;
  while (const dirent* entry = ::readdir(proc.get())) {
    const auto pid = to_number<pid_t>(entry->d_name);
    if (pid <= 0) continue;
    if (auto status = read_proc_status(pid)) found.push_back(std::move(*status));
  }
  return found;
}

bool environment_has(pid_t pid, std::string_view prefix) {
  const std::string text = '\0' + proc_file_in_time(pid, "environ").value_or("");
  std::string wanted(1, '\0');
  wanted += prefix;
  return text.find(wanted) != std::string::npos;
}

std::string describe_wait(pid_t pid) {
  const auto status = read_proc_status(pid);
  if (!status) return "";
  std::string text = std::string("state ") + status->state;
  if (status->state == 'R')
    return text;  // it waits nowhere; what its stack says is of an interrupt
  const auto syscall = proc_file_in_time(pid, "syscall");
  if (!syscall) return text + ", and the kernel does not say where: amid an exec, or in a driver";
  if (const std::string call = call_name(*syscall); !call.empty()) text += ", in " + call;
  const std::string wchan = proc_file_in_time(pid, "wchan").value_or("");
  if (!wchan.empty() && wchan != "0") text += ", at " + wchan;
  std::string stack = proc_file_in_time(pid, "stack").value_or("");
  if (!stack.empty()) {
    while (!stack.empty() && stack.back() == '\n') stack.pop_back();
    std::replace(stack.begin(), stack.end(), '\n', ' ');
    text += ", stack " + stack;
  }
  return text;
}

}  // namespace savegate::harness
