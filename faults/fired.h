// Fired records: proof that a rule acted.
//
// One JSON object a line in fired.jsonl, appended and flushed before the effect can be seen (a kill
// is on record before its signal is sent). Field names are those of the struct.
#pragma once

#include <cstdint>
#include <string>

#include "faults/operation.h"
#include "faults/status.h"

namespace savegate::faults {

struct FiredRecord {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t seq = 0;      // the operation's TraceRecord::begin_seq
  std::string rule;           // the rule's or budget's name
  std::uint64_t hit = 0;      // 1 for the rule's first hit in this life
  std::string
      action;  // as printed by the plan: "errno ENOSPC after 65536", "kill SIGKILL middle 50%"
  int life = 0;
  int attempt = 0;
  std::string phase;  // the caller's phase, "" outside any
  Caller caller;      // JSON: rank, pid, tid, relation
  Op op = Op::kLookup;
  std::string path;
  std::string path2;
  std::uint64_t offset = 0;
  std::uint64_t requested = 0;  // bytes
  std::uint64_t returned = 0;   // bytes that took effect
  int error = 0;                // errno given to the caller, 0 for none; JSON: its name, or ""
  std::uint64_t fs_free = 0;    // bytes free on the mount as statfs tells, at that moment
};

std::string to_json_line(const FiredRecord& record);  // without '\n'
Result<FiredRecord> fired_from_json_line(const std::string& line);

}  // namespace savegate::faults
