// The marker: metadata.json, which makes a checkpoint complete, and the run contract that it
// carries.
//
// It lists every file of every rank with size and digest; a directory without it is no checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "faults/status.h"
#include "scenarios/subjects/reference/files.h"

namespace savegate::reference {

// What must be the same for a resumed run to be the same run.
struct Contract {
  std::string code;  // digests
  std::string data;
  std::string recipe;
  std::uint64_t total_steps = 0;

  std::map<std::string, std::string> items() const;  // "code" → its value
};
// Item by item; the error names each item that differs.
Result<void> check_contract(const Contract& saved, const Contract& current);

// 1 came before there was an expert parallel size.
inline constexpr int kNewestFormat = 2;

struct Marker {
  int format = kNewestFormat;
  std::int64_t step = 0;
  int world = 0;
  Contract contract;
  std::vector<FileRecord> files;
  int expert_parallel = 1;

  const FileRecord* find(const std::string& name) const;
};

std::string print_marker(const Marker& marker);
// A marker of a format that is newer than `newest_known` is an error that says so.
Result<Marker> parse_marker(const std::string& json, const std::string& path,
                            int newest_known = kNewestFormat);

// Records as ranks tell them to each other. No text is no records.
std::string print_records(const std::vector<FileRecord>& records);
Result<std::vector<FileRecord>> parse_records(const std::string& json);

// Names below the root.
inline constexpr const char* kPointerName = "latest";
inline constexpr const char* kNoCheckpoint = "none";  // what the pointer says before the first save
inline constexpr const char* kMarkerName = "metadata.json";
std::string step_name(std::int64_t step);  // "step_00000002"
// The step of "step_00000002"; -1 for any other name.
std::int64_t step_of(const std::string& name);
std::string shard_name(int rank, int world);  // "shard-00001-of-00004.safetensors"
std::string state_name(int rank, int world);  // "state-00001-of-00004.json"

}  // namespace savegate::reference
