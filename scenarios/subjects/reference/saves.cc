#include "scenarios/subjects/reference/saves.h"

#include "scenarios/subjects/reference/wake.h"

namespace savegate::reference {

// Once the pointer names the checkpoint the save has succeeded, whatever becomes of the old ones.
Result<void> SynchronousSaves::save(const State& state) {
  const std::int64_t step = state.counters.global_step;
  const int number = static_cast<int>(step);
  auto saved = saver_->save(state);
  if (!saved) {
    job_.worker.save_end(step, number, reporter_.shown(saved));
    return saved;
  }
  auto rotated = saver_->rotate();
  job_.worker.save_end(step, number, saved);
  job_.worker.durable(step, number, saved);
  worker::Memory facts = reporter_.memory(job_.backend);
  add_wakeable(job_, facts);
  job_.worker.memory(step, "save", facts);
  return rotated;
}

}  // namespace savegate::reference
