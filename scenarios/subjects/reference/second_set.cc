#include "scenarios/subjects/reference/second_set.h"

#include <utility>

namespace savegate::reference {

Result<State> second_set(gpu::Backend& backend, const State& state) {
  State second;
  second.tensors = state.tensors;
  second.parameters = state.parameters;
  second.scheduler = state.scheduler;
  second.random = state.random;
  second.counters = state.counters;
  for (NamedTensor& named : second.tensors) {
    SAVEGATE_TRY(gpu::Buffer memory, backend.allocate(named.tensor.bytes()));
    named.tensor.data = memory.get();
    second.memory.push_back(std::move(memory));
  }
  return second;
}

Result<State> second_set_with_values(gpu::Backend& backend, const State& state) {
  SAVEGATE_TRY(State second, second_set(backend, state));
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    SAVEGATE_CHECK(backend.copy(second.tensors[i].tensor, state.tensors[i].tensor));
  }
  return second;
}

}  // namespace savegate::reference
