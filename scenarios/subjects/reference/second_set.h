// A second set of a state's tensors, on the same device: what a save writes from while the state
// may change, or what a load is gathered in until all of it is known to be right.
#pragma once

#include "faults/status.h"
#include "gpu/backend.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

// All that is no tensor is copied; the tensors are zero.
Result<State> second_set(gpu::Backend& backend, const State& state);
Result<State> second_set_with_values(gpu::Backend& backend, const State& state);

}  // namespace savegate::reference
