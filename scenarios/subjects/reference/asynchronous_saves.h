// Asynchronous saves: the call takes a snapshot and returns; a thread of its own writes it.
//
//   program   await_room → snapshot, agreed by all ranks → save_end → trains on …
//   writer                                         save (save.h) → rotate → durable
//
// The writer has its own communicator, worker and backend, so that neither thread waits for the
// other: only await_room() and drain() do. Snapshots are written in the order of the calls.
//
// All ranks come to the same outcome of a save by the votes within it, and await_room() looks only
// at saves that every rank must have finished by then, so the same failure surfaces at the same
// call on all of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "scenarios/subjects/reference/saves.h"
#include "scenarios/subjects/reference/staging.h"

namespace savegate::reference {

// What the writer has of its own, made by the program.
struct WriterParts {
  std::unique_ptr<gpu::Backend> host;  // reads the snapshots
  std::unique_ptr<Comms> comms;
  std::unique_ptr<worker::Worker> worker;
  std::unique_ptr<Job> job;  // of the three
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Staging> staging;  // of the program's backend
};

class AsynchronousSaves : public Saves {
 public:
  // `job` is the program's own.
  AsynchronousSaves(Job& job, Reporter& reporter, WriterParts writer, std::size_t most_in_flight);
  ~AsynchronousSaves() override;  // after the last save that was handed over

  void begin_life(const std::string& pointer) override { writer_.saver->begin_life(pointer); }
  void tidy() override;
  Result<void> await_room() override;
  Result<void> save(const State& state) override;
  Result<void> drain() override;
  void add_facts(worker::Memory& facts) const override;

 private:
  Result<void> await_finished(std::size_t saves);
  void hand_over(State snapshot);
  void remember(std::int64_t step, const char* phase);
  void write_all();
  Result<void> write(const State& snapshot);

  struct Outcome {
    std::int64_t step;
    Result<void> saved;
  };

  Job& job_;
  Reporter& reporter_;
  WriterParts writer_;
  const std::size_t most_in_flight_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<State> handed_over_;
  std::vector<Outcome> outcomes_;  // of finished saves, in order
  bool ending_ = false;

  // The program's own.
  std::size_t calls_ = 0;   // handed over, ever
  std::size_t tidied_ = 0;  // finished saves that tidy() has seen

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace savegate::reference
