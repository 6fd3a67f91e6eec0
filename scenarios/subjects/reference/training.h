// The training: one step of Adam on made-up gradients.
//
// The gradients come from everything that a resume must bring back: the samples that the data
// cursor points at, draws from all four random number streams of every rank, the counters and the
// parameters themselves; the step size from the scheduler. So a state that was restored wrongly
// leads to another state from then on, and equal states to equal bytes.
#pragma once

#include <cstdint>

#include "faults/status.h"
#include "harness/worker/worker.h"
#include "scenarios/subjects/reference/job.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

struct StepReport {
  bool changed = false;     // some parameter has other bits than before
  worker::Samples samples;  // of this rank
};

class Training {
 public:
  explicit Training(Job& job) : job_(job) {}
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;
  virtual ~Training() = default;

  // Called once, after the state was restored or started.
  virtual Result<void> begin(State& /*state*/) { return {}; }
  Result<StepReport> step(State& state);

 protected:
  virtual float gradient_scale() const { return 1; }

  Job& job_;

 private:
  // A number that depends on every rank's draws and samples, the same on all ranks.
  Result<std::uint64_t> agree_on_batch(State& state, const worker::Samples& samples);
  Result<bool> update(State& state, const Parameter& parameter, std::uint64_t batch) const;
};

}  // namespace savegate::reference
