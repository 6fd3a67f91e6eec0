#include "fusefs/process_info.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <unordered_map>

namespace savegate::fusefs {

namespace {

constexpr std::array<std::string_view, 4> kRankVariables = {"RANK", "SLURM_PROCID",
                                                            "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

// A process that is gone or not ours reads as nothing.
std::optional<std::string> read_proc(pid_t pid, const char* name) {
  int fd = ::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    ssize_t got = ::read(fd, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  ::close(fd);
  return text;
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  T value{};
  auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::string_view field(std::string_view text, std::string_view name) {
  auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  auto from = at + name.size();
  return text.substr(from, text.find('\n', from) - from);
}

}  // namespace

std::optional<ProcessStatus> parse_status(std::string_view text) {
  auto tgid = number<pid_t>(field(text, "\nTgid:"));
  auto ppid = number<pid_t>(field(text, "\nPPid:"));
  if (!tgid || !ppid) return std::nullopt;
  auto pending = number<std::uint64_t>(field(text, "\nSigPnd:"), 16).value_or(0) |
                 number<std::uint64_t>(field(text, "\nShdPnd:"), 16).value_or(0);
  const bool killed = (pending & (std::uint64_t{1} << (SIGKILL - 1))) != 0;
  const bool exiting = text.find("\nVmSize:") == std::string_view::npos;
  return ProcessStatus{*tgid, *ppid, killed || exiting};
}

std::optional<std::uint64_t> parse_start_ticks(std::string_view text) {
  auto at = text.rfind(')');  // the program's name may hold anything
  if (at == std::string_view::npos) return std::nullopt;
  for (int i = 0; i < 20; i++) {
    at = text.find(' ', at + 1);
    if (at == std::string_view::npos) return std::nullopt;
  }
  return number<std::uint64_t>(text.substr(at));
}

std::optional<int> rank_from_environment(std::string_view environment) {
  std::array<std::optional<int>, kRankVariables.size()> found;
  while (!environment.empty()) {
    auto end = environment.find('\0');
    auto entry = environment.substr(0, end);
    for (std::size_t i = 0; i < kRankVariables.size(); i++) {
      auto name = kRankVariables[i];
      if (entry.size() <= name.size() || entry[name.size()] != '=' || !entry.starts_with(name)) {
        continue;
      }
      auto rank = number<int>(entry.substr(name.size() + 1));
      if (rank && *rank >= 0) found[i] = rank;
    }
    if (end == std::string_view::npos) break;
    environment.remove_prefix(end + 1);
  }
  for (auto rank : found) {
    if (rank) return rank;
  }
  return std::nullopt;
}

std::optional<bool> parse_fills_pages(std::string_view text) {
  constexpr std::array<long, 10> kReading = {
      SYS_read,     SYS_pread64, SYS_readv,           SYS_preadv,    SYS_preadv2,
      SYS_sendfile, SYS_splice,  SYS_copy_file_range, SYS_io_submit, SYS_io_uring_enter};
  const auto call = number<long>(text);
  if (!call) return std::nullopt;
  return std::find(kReading.begin(), kReading.end(), *call) == kReading.end();
}

std::optional<ProcessStatus> process_status(pid_t tid) {
  auto text = read_proc(tid, "status");
  return text ? parse_status(*text) : std::nullopt;
}

bool fills_pages(pid_t tid) {
  constexpr int kLooks = 20;
  for (int look = 0; look < kLooks; ++look) {
    auto text = read_proc(tid, "syscall");
    if (!text) return false;
    if (auto fills = parse_fills_pages(*text)) return *fills;
    // It runs: it is about to wait, or it does not wait at all, as for pages that are read ahead.
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

std::optional<std::uint64_t> start_ticks(pid_t pid) {
  auto text = read_proc(pid, "stat");
  return text ? parse_start_ticks(*text) : std::nullopt;
}

std::optional<int> process_rank(pid_t pid) {
  auto text = read_proc(pid, "environ");
  return text ? rank_from_environment(*text) : std::nullopt;
}

std::vector<pid_t> descendants(const std::vector<pid_t>& ancestors) {
  std::unordered_multimap<pid_t, pid_t> children;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const auto pid = number<pid_t>(at->path().filename().string());
    if (!pid) continue;
    if (auto status = process_status(*pid)) children.emplace(status->ppid, *pid);
  }
  std::vector<pid_t> found = ancestors;
  for (std::size_t i = 0; i < found.size(); i++) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(ancestors.size()));
  return found;
}

}  // namespace savegate::fusefs
