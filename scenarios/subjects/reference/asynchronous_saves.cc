#include "scenarios/subjects/reference/asynchronous_saves.h"

namespace savegate::reference {

AsynchronousSaves::AsynchronousSaves(Job& job, Reporter& reporter, WriterParts writer,
                                     std::size_t most_in_flight)
    : job_(job),
      reporter_(reporter),
      writer_(std::move(writer)),
      most_in_flight_(most_in_flight),
      thread_([this] { write_all(); }) {}

AsynchronousSaves::~AsynchronousSaves() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<void> AsynchronousSaves::await_room() {
  return await_finished(calls_ < most_in_flight_ ? 0 : calls_ - most_in_flight_ + 1);
}

Result<void> AsynchronousSaves::drain() { return await_finished(calls_); }

// The first failure among the first `saves`, when all of these are finished.
Result<void> AsynchronousSaves::await_finished(std::size_t saves) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outcomes_.size() >= saves; });
    for (std::size_t i = 0; i < saves; ++i) SAVEGATE_CHECK(outcomes_[i].saved);
  }
  tidy();
  return {};
}

// By the program's thread: backends serve one thread alone.
void AsynchronousSaves::tidy() {
  std::vector<std::int64_t> finished;
  {
    const std::lock_guard lock(mutex_);
    for (; tidied_ < outcomes_.size(); ++tidied_) {
      if (outcomes_[tidied_].saved) finished.push_back(outcomes_[tidied_].step);
    }
  }
  if (finished.empty()) return;
  writer_.staging->trim();
  for (const std::int64_t step : finished) remember(step, "save");
}

void AsynchronousSaves::add_facts(worker::Memory& facts) const {
  const Staging::Bytes bytes = writer_.staging->bytes();
  facts["host_staging"] = bytes.held;
  facts["host_staging_used"] = bytes.used;
}

void AsynchronousSaves::remember(std::int64_t step, const char* phase) {
  worker::Memory facts = reporter_.memory(job_.backend);
  add_facts(facts);
  job_.worker.memory(step, phase, facts);
}

Result<void> AsynchronousSaves::save(const State& state) {
  const std::int64_t step = state.counters.global_step;
  const int number = static_cast<int>(step);
  auto snapshot = writer_.staging->snapshot(state);
  remember(step, "snapshot");
  const Result<void> own = snapshot ? Result<void>() : fail(snapshot.error());
  Result<void> taken;
  if (const auto votes = vote(job_.comms, own, ""); !votes) {
    taken = fail(votes.error());
  } else {
    taken = first_error(*votes);
  }
  job_.worker.save_end(step, number, reporter_.shown(taken));
  if (taken) hand_over(std::move(*snapshot));
  return taken;
}

void AsynchronousSaves::hand_over(State snapshot) {
  {
    const std::lock_guard lock(mutex_);
    handed_over_.push_back(std::move(snapshot));
    ++calls_;
  }
  changed_.notify_all();
}

void AsynchronousSaves::write_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !handed_over_.empty(); });
    if (handed_over_.empty()) return;
    State snapshot = std::move(handed_over_.front());
    handed_over_.pop_front();
    const std::int64_t step = snapshot.counters.global_step;
    lock.unlock();
    auto written = write(snapshot);
    snapshot = State();
    lock.lock();
    outcomes_.push_back({step, std::move(written)});
    changed_.notify_all();
  }
}

Result<void> AsynchronousSaves::write(const State& snapshot) {
  const std::int64_t step = snapshot.counters.global_step;
  const int number = static_cast<int>(step);
  auto saved = writer_.saver->save(snapshot);
  auto rotated = saved ? writer_.saver->rotate() : saved;
  writer_.worker->durable(step, number, reporter_.shown(saved));
  return rotated;
}

}  // namespace savegate::reference
