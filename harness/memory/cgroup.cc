#include "harness/memory/cgroup.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

using Fact = std::optional<std::uint64_t>;

Fact number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

// "anon 4096\nfile 8192\n"
Fact entry(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') {
      return number(line.substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

Fact less(Fact whole, Fact part) {
  if (!whole || !part) return std::nullopt;
  return *whole - std::min(*whole, *part);
}

// A v1 cgroup without a limit gives the largest number of whole pages.
Fact limit(std::string_view text) {
  constexpr std::uint64_t kNone = std::uint64_t{1} << 62;
  const Fact value = number(text);
  return value && *value < kNone ? value : std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

bool lists(std::string_view commas, std::string_view wanted) {
  while (!commas.empty()) {
    const std::string_view word = commas.substr(0, commas.find(','));
    if (word == wanted) return true;
    commas.remove_prefix(std::min(word.size() + 1, commas.size()));
  }
  return false;
}

struct Mount {
  std::string root;
  std::string point;
};

// "36 32 0:30 / /sys/fs/cgroup/memory rw,relatime shared:15 - cgroup cgroup rw,memory"
std::optional<Mount> find_mount(std::string_view mountinfo, CgroupVersion version) {
  std::istringstream in{std::string(mountinfo)};
  for (std::string line; std::getline(in, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = words_of(line.substr(0, dash));
    const auto after = words_of(line.substr(dash + 3));
    if (before.size() < 5 || after.size() < 3) continue;
    const bool wanted = version == CgroupVersion::kTwo
                            ? after[0] == "cgroup2"
                            : after[0] == "cgroup" && lists(after[2], "memory");
    if (wanted) return Mount{.root = before[3], .point = before[4]};
  }
  return std::nullopt;
}

// "4:memory:/job", "0::/job"
std::optional<std::string> find_path(std::string_view cgroup, CgroupVersion version) {
  std::istringstream in{std::string(cgroup)};
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        version == CgroupVersion::kTwo ? line.starts_with("0::") : lists(controllers, "memory");
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::string text_of(const CgroupPlace& place, const char* name) {
  auto text = read_file(place.directory + "/" + name);
  return text ? std::move(*text) : std::string();
}

std::string_view anonymous_entry(CgroupVersion version) {
  return version == CgroupVersion::kTwo ? "anon" : "total_rss";
}

const char* current_file(CgroupVersion version) {
  return version == CgroupVersion::kTwo ? "memory.current" : "memory.usage_in_bytes";
}

const char* events_file(CgroupVersion version) {
  return version == CgroupVersion::kTwo ? "memory.events" : "memory.oom_control";
}

}  // namespace

void read_cgroup_texts(CgroupVersion version, const CgroupTexts& texts, MemoryFacts& facts) {
  const bool two = version == CgroupVersion::kTwo;
  const Fact shmem = entry(texts.stat, two ? "shmem" : "total_shmem");
  facts["cgroup_current"] = number(texts.current);
  facts["cgroup_peak"] = number(texts.peak);
  facts["cgroup_anon"] = entry(texts.stat, anonymous_entry(version));
  // Both versions count shared memory as file pages too.
  facts["cgroup_file"] = less(entry(texts.stat, two ? "file" : "total_cache"), shmem);
  facts["cgroup_shmem"] = shmem;
  facts["cgroup_limit"] = limit(texts.limit);
  facts["cgroup_oom_kills"] = entry(texts.events, "oom_kill");
}

std::optional<CgroupPlace> find_memory_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  for (const CgroupVersion version : {CgroupVersion::kOne, CgroupVersion::kTwo}) {
    const auto mount = find_mount(mountinfo, version);
    auto path = find_path(cgroup, version);
    if (!mount || !path) continue;
    // A container may see only the part of the hierarchy that it is in.
    if (mount->root != "/" && path->starts_with(mount->root)) path->erase(0, mount->root.size());
    if (path->empty() || *path == "/") return CgroupPlace{version, mount->point};
    return CgroupPlace{version, mount->point + *path};
  }
  return std::nullopt;
}

std::optional<CgroupPlace> memory_cgroup_of(pid_t pid) {
  const auto cgroup = read_file("/proc/" + std::to_string(pid) + "/cgroup");
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!cgroup || !mounts) return std::nullopt;
  return find_memory_cgroup(*cgroup, *mounts);
}

std::optional<std::uint64_t> memory_held(const CgroupPlace& place) {
  return number(text_of(place, current_file(place.version)));
}

std::optional<std::uint64_t> anonymous_held(const CgroupPlace& place) {
  return entry(text_of(place, "memory.stat"), anonymous_entry(place.version));
}

std::optional<std::uint64_t> oom_kills_in(const CgroupPlace& place) {
  // Version 2 counts those of the cgroups below too, but for this file, which older kernels lack.
  const auto own = entry(text_of(place, "memory.events.local"), "oom_kill");
  if (own) return own;
  return entry(text_of(place, events_file(place.version)), "oom_kill");
}

MemoryFacts measure_cgroup(const CgroupPlace& place) {
  const bool two = place.version == CgroupVersion::kTwo;
  CgroupTexts texts;
  texts.current = text_of(place, current_file(place.version));
  texts.peak = text_of(place, two ? "memory.peak" : "memory.max_usage_in_bytes");
  texts.events = text_of(place, events_file(place.version));
  texts.limit = text_of(place, two ? "memory.max" : "memory.limit_in_bytes");
  texts.stat = text_of(place, "memory.stat");
  MemoryFacts facts;
  read_cgroup_texts(place.version, texts, facts);
  return facts;
}

}  // namespace savegate::harness
