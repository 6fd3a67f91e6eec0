// The export: what a serving engine would load, each parameter in fp8 with one scale a block.
//
// The scales are derived from the parameters and kept, so that exports of one state do not look for
// them twice. They are no part of a checkpoint: whatever changes the parameters makes them invalid,
// and the next export derives them again.
#pragma once

#include <functional>
#include <vector>

#include "faults/status.h"
#include "gpu/backend.h"
#include "gpu/digest.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

class Exporter {
 public:
  explicit Exporter(gpu::Backend& backend) : backend_(backend) {}
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;
  virtual ~Exporter() = default;

  // The model was made, before anything is loaded into it.
  Result<void> built(const State& state) { return derive(state); }
  virtual void loaded() { scales_.clear(); }
  void updated() { scales_.clear(); }

  Result<gpu::Digest> digest(const State& state);

 private:
  using Scales = std::vector<float>;  // of one parameter, by block
  Result<void> derive(const State& state);
  Result<void> visit(const gpu::Tensor& tensor,
                     const std::function<void(const std::vector<std::byte>&)>& visitor);

  gpu::Backend& backend_;
  std::vector<Scales> scales_;  // by parameter; empty: to be derived
};

}  // namespace savegate::reference
