// The log of steps: one line a step in a file beside the checkpoints, by rank 0.
//
// A resumed run appends to what is there: records of earlier steps are nobody's to overwrite.
#pragma once

#include <cstdint>

#include "faults/status.h"
#include "scenarios/subjects/reference/job.h"

namespace savegate::reference {

inline constexpr const char* kStepLogName = "metrics.jsonl";

class StepLog {
 public:
  explicit StepLog(Job& job) : job_(job) {}
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;
  virtual ~StepLog() = default;

  // Called once, before the first step.
  virtual Result<void> begin() { return {}; }
  Result<void> add(std::int64_t step);

 protected:
  Job& job_;
};

}  // namespace savegate::reference
