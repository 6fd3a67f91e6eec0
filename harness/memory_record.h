// What a rank's process held of the host at the end of a phase: one JSON line in
// life-N/memory.jsonl, written by the runner, which measures from outside.
//
//   {"time_ns":…,"node":"n1","rank":0,"pid":7,"phase":"save","step":3,"event_ns":…,
//    "facts":{"pss_anon":9437184,"threads":4,"cgroup_peak":null,…},"missing":""}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "faults/status.h"

namespace savegate::harness {

inline constexpr const char* kRankEnd = "end";  // phase: the rank has ended
inline constexpr const char* kJobEnd = "job";   // phase: all have, and this is what they held
inline constexpr int kWholeJob = -1;            // in place of a rank

// Bytes or counts by name. Absent or null: not obtained. A 0 is a measured 0.
using MemoryFacts = std::map<std::string, std::optional<std::uint64_t>>;

struct MemoryRecord {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC, when it was measured
  std::string node;
  int rank = 0;
  std::int64_t pid = 0;
  // load, update, export, "before save", save; "running" between phases; kRankEnd, kJobEnd
  std::string phase;
  std::optional<std::int64_t> step;
  std::uint64_t event_ns = 0;  // when the runner saw that the phase had ended; 0 for others
  MemoryFacts facts;
  std::string missing;  // why there are no facts, "" where there are
};

std::string print_memory_record(const MemoryRecord& record);  // without '\n'
Result<MemoryRecord> parse_memory_record(std::string_view line);

std::optional<std::uint64_t> fact_of(const MemoryFacts& facts, const std::string& name);

}  // namespace savegate::harness
