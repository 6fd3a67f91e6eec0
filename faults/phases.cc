#include "faults/phases.h"

#include <utility>

namespace savegate::faults {

void Phases::enter(int rank, std::string_view span) {
  const std::lock_guard lock(mutex_);
  Rank& state = ranks_[rank];
  Phase phase;
  phase.full = span;
  phase.span = span;
  phase.attempt = ++state.attempts[phase.span];
  state.phase = std::make_shared<const Phase>(std::move(phase));
}

void Phases::leave(int rank) {
  const std::lock_guard lock(mutex_);
  if (auto found = ranks_.find(rank); found != ranks_.end()) found->second.phase = outside_;
}

void Phases::point(int rank, std::string_view name) {
  const std::lock_guard lock(mutex_);
  Rank& state = ranks_[rank];
  Phase phase;
  if (state.phase) phase = {.full = "", .span = state.phase->span, .attempt = state.phase->attempt};
  if (!phase.span.empty()) phase.full = phase.span + '/';
  phase.full += name;
  state.phase = std::make_shared<const Phase>(std::move(phase));
}

std::shared_ptr<const Phase> Phases::now(int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = ranks_.find(rank);
  return found == ranks_.end() || !found->second.phase ? outside_ : found->second.phase;
}

}  // namespace savegate::faults
