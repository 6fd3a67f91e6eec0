#include "faults/phases.h"

#include <utility>

namespace savegate::faults {

void Phases::Rank::set(std::shared_ptr<const Phase> next) {
  phase = std::move(next);
  serial.fetch_add(1, std::memory_order_release);
}

void Phases::enter(int rank, std::string_view span) {
  Rank& state = ranks_.of(rank);
  const std::lock_guard lock(state.mutex);
  Phase phase;
  phase.full = span;
  phase.span = span;
  phase.attempt = ++state.attempts[phase.span];
  state.set(std::make_shared<const Phase>(std::move(phase)));
}

void Phases::leave(int rank, std::string_view span) {
  Rank* state = ranks_.find(rank);
  if (state == nullptr) return;
  const std::lock_guard lock(state->mutex);
  if (state->phase && state->phase->span == span) state->set(outside_);
}

void Phases::point(int rank, std::string_view name) {
  Rank& state = ranks_.of(rank);
  const std::lock_guard lock(state.mutex);
  Phase phase;
  if (state.phase) phase = {.full = "", .span = state.phase->span, .attempt = state.phase->attempt};
  if (!phase.span.empty()) phase.full = phase.span + '/';
  phase.full += name;
  state.set(std::make_shared<const Phase>(std::move(phase)));
}

std::shared_ptr<const Phase> Phases::now(int rank) const {
  Rank* state = ranks_.find(rank);
  if (state == nullptr) return outside_;
  const std::lock_guard lock(state->mutex);
  return state->phase ? state->phase : outside_;
}

std::uint64_t Phases::serial(int rank) const {
  const Rank* state = ranks_.find(rank);
  return state == nullptr ? 0 : state->serial.load(std::memory_order_acquire);
}

}  // namespace savegate::faults
