// What the program says of itself, over the worker. The virtual ones are what a negative control
// overrides.
#pragma once

#include <vector>

#include "faults/status.h"
#include "gpu/backend.h"
#include "harness/worker/worker.h"

namespace savegate::reference {

class Reporter {
 public:
  explicit Reporter(worker::Worker& worker) : worker_(worker) {}
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;
  virtual ~Reporter() = default;

  virtual void hello() { worker_.hello({{"savegate-reference", "1"}}); }
  // What the events say of the state's items.
  virtual std::vector<worker::Item> shown(std::vector<worker::Item> items) { return items; }
  virtual Status shown(const Status& error) { return error; }
  Result<void> shown(const Result<void>& outcome) {
    return outcome ? outcome : fail(shown(outcome.error()));
  }
  virtual worker::Memory memory(gpu::Backend& backend);
  virtual int exit_status(int status) { return status; }

 protected:
  worker::Worker& worker_;
};

}  // namespace savegate::reference
