// A scene: what happened in a scenario, rank by rank, as pictures of it need it.
//
// harness/oracles/scene.h makes one out of evidence. Times are CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace savegate::reports {

enum class SliceKind : std::uint8_t { kSave, kPhase, kCollective, kWrite, kSync, kName, kOpen };

struct Slice {
  SliceKind kind = SliceKind::kSave;
  int rank = 0;
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::string name;    // "save 2", "commit", "write step_2/shard-1"
  std::string detail;  // "offset 0, 4096 asked, 0 written: ENOSPC"
  bool failed = false;
};

enum class InstantKind : std::uint8_t { kFault, kKill, kEnd };

struct Instant {
  InstantKind kind = InstantKind::kFault;
  int rank = 0;
  std::int64_t process = 0;
  std::int64_t thread = 0;
  std::uint64_t time_ns = 0;
  std::string name;
  std::string detail;
};

struct CounterPoint {  // bytes written and not yet asked to be durable, of all ranks
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;
};

struct MemoryPoint {
  int rank = 0;
  std::string phase;
  std::string name;                    // "host_rss_peak"
  std::optional<std::uint64_t> bytes;  // absent: not obtained
};

struct PhaseTime {
  int rank = 0;
  std::string phase;  // "save 2", "save 2/commit", "restore"
  double seconds = 0;
};

struct SceneLife {
  int number = 1;
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::vector<Slice> slices = {};
  std::vector<Instant> instants = {};
  std::vector<CounterPoint> unsynced = {};
  std::vector<MemoryPoint> memory = {};
  std::vector<PhaseTime> times = {};
  std::vector<std::string> fired = {};  // one line each
};

struct DigestDifference {
  int life = 0;
  int rank = 0;
  std::string tensor;
  std::string range;  // "bytes 0–4095 of 8192", or the block's shape and offset
  std::string saved;
  std::string found;  // digest, or why there is none
};

struct Scene {
  int world = 0;
  std::vector<SceneLife> lives;
  std::string first_file_system_error;  // "" for none
  std::string first_subject_error;
  std::vector<DigestDifference> differences;
};

}  // namespace savegate::reports
