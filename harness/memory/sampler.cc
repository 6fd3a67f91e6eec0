#include "harness/memory/sampler.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "harness/run/files.h"

namespace savegate::harness {
namespace {

constexpr std::uint64_t kRestFactor = 20;
constexpr std::uint64_t kLeastRest = 2'000'000;  // ns
// Between phases: programs without events, and phases that take long.
constexpr std::uint64_t kRunningEvery = 1'000'000'000;

// The text behind `"key":`, without leading blanks. The same word may be a value, as an item's
// name.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key)) {
    line.remove_prefix(at + key.size());
    const std::size_t colon = line.find_first_not_of(' ');
    if (colon == std::string_view::npos || line[colon] != ':') continue;
    const std::size_t begin = line.find_first_not_of(' ', colon + 1);
    if (begin == std::string_view::npos) return std::nullopt;
    return line.substr(begin);
  }
  return std::nullopt;
}

std::optional<std::int64_t> integer_of(std::string_view line, std::string_view key) {
  const auto text = value_of(line, key);
  std::int64_t value = 0;
  if (!text) return std::nullopt;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

struct Ends {
  std::string_view event;
  const char* phase;
};
constexpr std::array<Ends, 5> kEnds = {{{"\"resumed\"", "load"},
                                        {"\"update\"", "update"},
                                        {"\"export\"", "export"},
                                        {"\"save_begin\"", "before save"},
                                        {"\"durable\"", "save"}}};

}  // namespace

std::optional<PhaseEnd> phase_ended_by(std::string_view line) {
  const auto event = value_of(line, "\"event\"");
  if (!event) return std::nullopt;
  for (const Ends& ends : kEnds) {
    if (event->starts_with(ends.event)) {
      return PhaseEnd{.phase = ends.phase, .step = integer_of(line, "\"step\"")};
    }
  }
  return std::nullopt;
}

std::optional<pid_t> pid_said_by(std::string_view line) {
  const auto event = value_of(line, "\"event\"");
  if (!event || !event->starts_with("\"hello\"")) return std::nullopt;
  const auto pid = integer_of(line, "\"pid\"");
  if (!pid) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

Result<MemorySampler> MemorySampler::create(const std::string& path, const JobCgroup* job) {
  MemorySampler sampler;
  sampler.job_ = job;
  sampler.path_ = path;
  sampler.file_.open(path, std::ios::binary | std::ios::trunc);
  if (!sampler.file_) return fail(system_error("create", path));
  utsname system{};
  if (::uname(&system) == 0) sampler.node_ = system.nodename;
  return sampler;
}

void MemorySampler::watch(int rank, pid_t pid) {
  Target& target = targets_[rank];
  target.pid = pid;
  target.cgroup = job_ != nullptr ? job_->rank(rank) : memory_cgroup_of(pid);
  if (target.cgroup) target.oom_kills = oom_kills_in(*target.cgroup);
  target.running_ns = monotonic_ns() + kRunningEvery;
}

void MemorySampler::on_event_line(int rank, std::string_view line) {
  auto found = targets_.find(rank);
  if (found == targets_.end()) {
    const auto pid = pid_said_by(line);
    if (pid) return watch(rank, *pid);
    found = targets_.try_emplace(rank).first;  // not obtained, but recorded
  }
  if (auto end = phase_ended_by(line)) {
    found->second.pending.push_back({.end = std::move(*end), .event_ns = monotonic_ns()});
  }
}

void MemorySampler::run(std::uint64_t now_ns) {
  for (auto& [rank, target] : targets_) {
    if (target.pid == 0 || now_ns < target.due_ns) continue;
    if (!target.pending.empty() || now_ns >= target.running_ns) measure(rank, target, now_ns);
  }
}

std::uint64_t MemorySampler::next_ns() const {
  std::uint64_t next = UINT64_MAX;
  for (const auto& [rank, target] : targets_) {
    if (target.pid == 0) continue;
    const std::uint64_t wanted = target.pending.empty() ? target.running_ns : target.due_ns;
    next = std::min(next, std::max(wanted, target.due_ns));
  }
  return next;
}

void MemorySampler::measure(int rank, Target& target, std::uint64_t now_ns) {
  const bool walk = !target.pending.empty() && now_ns >= target.walk_ns;
  const Pages pages = walk ? Pages::kWalked : Pages::kCounted;
  auto [facts, cost_ns] = measure_process(target.pid, pages);
  if (!facts.empty()) {
    facts["shm_used"] = shared_memory_used();
    if (target.cgroup) facts.merge(measure_cgroup(*target.cgroup));
  }
  for (const Pending& pending : target.pending) {
    write(rank, target, pending.end, pending.event_ns, now_ns, facts);
  }
  if (target.pending.empty() && !facts.empty()) {
    write(rank, target, {.phase = "running", .step = std::nullopt}, 0, now_ns, facts);
  }
  target.pending.clear();
  const std::uint64_t done_ns = monotonic_ns();
  const std::uint64_t rest = std::max(kLeastRest, kRestFactor * cost_ns);
  if (walk) target.walk_ns = done_ns + rest;
  target.due_ns = done_ns + (walk ? kLeastRest : rest);
  target.running_ns = done_ns + kRunningEvery;
}

void MemorySampler::write(int rank, const Target& target, const PhaseEnd& end,
                          std::uint64_t event_ns, std::uint64_t time_ns, const MemoryFacts& facts) {
  MemoryRecord record{.time_ns = time_ns,
                      .node = node_,
                      .rank = rank,
                      .pid = target.pid,
                      .phase = end.phase,
                      .step = end.step,
                      .event_ns = event_ns,
                      .facts = facts,
                      .missing = ""};
  if (facts.empty()) record.missing = "not obtained: the process had ended before it was measured";
  file_ << print_memory_record(record) << '\n';
}

MemoryRecord MemorySampler::record_of(int rank, const Target& target, const char* phase) const {
  MemoryRecord record;
  record.time_ns = monotonic_ns();
  record.node = node_;
  record.rank = rank;
  record.pid = target.pid;
  record.phase = phase;
  return record;
}

// A cgroup that the rank shares with others counts their ends too.
void MemorySampler::write_end(int rank, const Target& target) {
  const auto kills = target.cgroup ? oom_kills_in(*target.cgroup) : std::nullopt;
  if (!kills || !target.oom_kills) return;
  MemoryRecord record = record_of(rank, target, kRankEnd);
  record.facts["cgroup_oom_kills"] = *kills - std::min(*kills, *target.oom_kills);
  file_ << print_memory_record(record) << '\n';
}

void MemorySampler::write_job() {
  MemoryRecord record = record_of(kWholeJob, {}, kJobEnd);
  record.facts = measure_cgroup(job_->job());
  record.facts["daemon_anon"] = anonymous_held(job_->file_system());
  file_ << print_memory_record(record) << '\n';
}

void MemorySampler::ended(int rank) {
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return;
  const Target& target = found->second;
  for (const Pending& pending : target.pending) {
    write(rank, target, pending.end, pending.event_ns, monotonic_ns(), {});
  }
  write_end(rank, target);
  targets_.erase(found);
}

Result<void> MemorySampler::finish() {
  while (!targets_.empty()) {
    ended(targets_.begin()->first);
  }
  if (job_ != nullptr) write_job();
  file_.close();
  if (!file_) return fail(system_error("write", path_));
  return {};
}

}  // namespace savegate::harness
