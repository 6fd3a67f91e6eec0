// The program's saves, as it calls them: it waits for each, or trains on while it is written.
//
//   SAVEGATE_CHECK(saves.await_room());            // an earlier save's failure surfaces here …
//   worker.save_begin(step, number, items);
//   SAVEGATE_CHECK(saves.save(state));
//   …
//   SAVEGATE_CHECK(saves.drain());                 // … or here
#pragma once

#include <memory>
#include <string>

#include "faults/status.h"
#include "scenarios/subjects/reference/job.h"
#include "scenarios/subjects/reference/reporter.h"
#include "scenarios/subjects/reference/save.h"

namespace savegate::reference {

class Saves {
 public:
  Saves() = default;
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;
  virtual ~Saves() = default;

  // As Saver::begin_life().
  virtual void begin_life(const std::string& pointer) = 0;
  // Called once a step: what finished saves held is given back.
  virtual void tidy() = 0;
  virtual Result<void> await_room() = 0;
  // Reports save_end and, when it is known, durable.
  virtual Result<void> save(const State& state) = 0;
  virtual Result<void> drain() = 0;
  // What a memory event says of the saves' own memory.
  virtual void add_facts(worker::Memory& facts) const = 0;
};

class SynchronousSaves : public Saves {
 public:
  SynchronousSaves(Job& job, Reporter& reporter, std::unique_ptr<Saver> saver)
      : job_(job), reporter_(reporter), saver_(std::move(saver)) {}

  void begin_life(const std::string& pointer) override { saver_->begin_life(pointer); }
  void tidy() override {}
  Result<void> await_room() override { return {}; }
  Result<void> save(const State& state) override;
  Result<void> drain() override { return {}; }
  void add_facts(worker::Memory& /*facts*/) const override {}  // it stages chunk by chunk

 private:
  Job& job_;
  Reporter& reporter_;
  std::unique_ptr<Saver> saver_;
};

}  // namespace savegate::reference
