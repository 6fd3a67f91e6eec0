#include "harness/memory/proc_memory.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <memory>

#include "harness/run/done_within.h"
#include "harness/run/files.h"

namespace savegate::harness {
namespace {

struct Line {
  std::string_view key;  // as the kernel writes it, with its colon
  const char* fact;
  std::uint64_t unit;
};

constexpr std::array<Line, 8> kStatus = {{{"VmRSS:", "rss", 1024},
                                          {"RssAnon:", "rss_anon", 1024},
                                          {"RssFile:", "rss_file", 1024},
                                          {"RssShmem:", "rss_shmem", 1024},
                                          {"VmHWM:", "rss_peak", 1024},
                                          {"VmLck:", "locked", 1024},
                                          {"VmPin:", "pinned", 1024},
                                          {"Threads:", "threads", 1}}};
constexpr std::array<Line, 5> kRollup = {{{"Pss:", "pss", 1024},
                                          {"Pss_Anon:", "pss_anon", 1024},
                                          {"Pss_File:", "pss_file", 1024},
                                          {"Pss_Shmem:", "pss_shmem", 1024},
                                          {"Anonymous:", "anonymous", 1024}}};

std::optional<std::uint64_t> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

template <std::size_t N>
void read_lines(std::string_view text, const std::array<Line, N>& wanted, MemoryFacts& facts) {
  for (const Line& each : wanted) facts[each.fact] = std::nullopt;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    for (const Line& each : wanted) {
      if (!line.starts_with(each.key)) continue;
      const auto value = number_at(line.substr(each.key.size()));
      if (value) facts[each.fact] = *value * each.unit;
    }
  }
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

void count_open_files(const std::string& process, MemoryFacts& facts) {
  facts["open_files"] = std::nullopt;
  facts["deleted_files"] = std::nullopt;
  const std::string path = process + "/fd";
  const Directory directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return;
  std::uint64_t open = 0;
  std::uint64_t deleted = 0;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    ++open;
    std::array<char, 4096> target{};
    const ssize_t length =
        ::readlinkat(::dirfd(directory.get()), entry->d_name, target.data(), target.size());
    if (length > 0 &&
        std::string_view(target.data(), static_cast<std::size_t>(length)).ends_with(" (deleted)")) {
      ++deleted;
    }
  }
  facts["open_files"] = open;
  facts["deleted_files"] = deleted;
}

// Of all its threads; a child that has ended and was not waited for counts.
void count_children(const std::string& process, MemoryFacts& facts) {
  facts["children"] = std::nullopt;
  const std::string path = process + "/task";
  const Directory directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return;
  std::uint64_t children = 0;
  bool told = false;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    const auto list = read_file(path + "/" + entry->d_name + "/children");
    if (!list) continue;  // a thread that has just ended, or a kernel that does not tell
    told = true;
    for (const char letter : *list) children += letter == ' ' ? 1U : 0U;
  }
  if (told) facts["children"] = children;
}

// Of this thread: on a busy machine a measurement takes longer without costing more.
std::uint64_t processor_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// What a reader may have to wait for.
Measured measure_rest(const std::string& process, Pages pages) {
  const std::uint64_t began = processor_ns();
  MemoryFacts facts;
  if (pages == Pages::kWalked) {
    const auto rollup = read_file(process + "/smaps_rollup");
    read_smaps_rollup_text(rollup ? *rollup : "", facts);
  }
  count_open_files(process, facts);
  count_children(process, facts);
  return {.facts = std::move(facts), .processor_ns = processor_ns() - began};
}

Measured rest_not_obtained(Pages pages, std::chrono::nanoseconds waited) {
  MemoryFacts facts;
  if (pages == Pages::kWalked) read_smaps_rollup_text("", facts);
  for (const char* fact : {"open_files", "deleted_files", "children"}) facts[fact] = std::nullopt;
  return {.facts = std::move(facts), .processor_ns = static_cast<std::uint64_t>(waited.count())};
}

}  // namespace

void read_status_text(std::string_view text, MemoryFacts& facts) {
  read_lines(text, kStatus, facts);
}

void read_smaps_rollup_text(std::string_view text, MemoryFacts& facts) {
  read_lines(text, kRollup, facts);
}

Measured measure_process(pid_t pid, Pages pages) {
  Measured measured;
  const std::string process = "/proc/" + std::to_string(pid);
  const auto status = read_file(process + "/status");
  if (!status) return {};
  read_status_text(*status, measured.facts);
  if (!measured.facts["rss"]) return {};  // a zombie has no memory left to tell of
  const std::chrono::seconds patience(pages == Pages::kWalked ? 10 : 1);
  auto rest = done_within(patience, [process, pages] { return measure_rest(process, pages); });
  if (!rest) rest = rest_not_obtained(pages, patience);
  measured.facts.merge(std::move(rest->facts));
  measured.processor_ns = rest->processor_ns;
  return measured;
}

std::optional<std::uint64_t> resident_bytes(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!status) return std::nullopt;
  MemoryFacts facts;
  read_status_text(*status, facts);
  return facts["rss"];
}

std::optional<std::uint64_t> shared_memory_used() {
  struct statvfs found {};
  if (::statvfs("/dev/shm", &found) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(found.f_blocks - found.f_bfree) * found.f_frsize;
}

}  // namespace savegate::harness
