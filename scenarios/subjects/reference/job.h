// A job: what every part of the save path needs to know of this rank and its peers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "faults/status.h"
#include "gpu/backend.h"
#include "gpu/collectives.h"
#include "harness/worker/worker.h"
#include "scenarios/subjects/reference/files.h"
#include "scenarios/subjects/reference/marker.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

// One communicator of this rank, its collectives reported as they begin and end. A single rank
// needs no peers.
class Comms {
 public:
  Comms(std::unique_ptr<gpu::Collectives> collectives, worker::Worker& worker,
        std::string name = "world")
      : collectives_(std::move(collectives)), worker_(worker), name_(std::move(name)) {}

  Result<void> barrier();
  Result<std::vector<std::string>> all_gather(const std::string& own);

 private:
  std::unique_ptr<gpu::Collectives> collectives_;  // null: a world of one
  worker::Worker& worker_;
  std::string name_;
  std::uint64_t number_ = 0;
};

class WakeProbe;

struct Job {
  int rank = 0;
  int world = 1;
  std::string root;  // of the checkpoints
  Comms& comms;
  worker::Worker& worker;
  Files& files;
  gpu::Backend& backend;
  Contract contract;
  int expert_parallel = 1;
  int format = kNewestFormat;     // of checkpoints: the one it writes, and the newest it knows
  Comms* device_comms = nullptr;  // the training's, where devices have their own
  WakeProbe* wake_probe = nullptr;
  bool writer_process = false;   // a child process writes the files of a save
  bool through_copy = false;     // saves write from, and loads go into, a second set of tensors
  bool step_log = false;         // kept beside the checkpoints
  std::uint64_t step_bytes = 0;  // of device memory that a training step works in

  Placement placement() const {
    return {.rank = rank, .world = world, .expert_parallel = expert_parallel};
  }
  std::string path(const std::string& name) const { return root + "/" + name; }
};

// An outcome as text, for whoever is to hear of it.
std::string print_vote(const Result<void>& own, const std::string& payload);
Result<std::string> parse_vote(const std::string& text);

// What each rank said of its own step, in rank order, with what it had to tell the others.
using Votes = std::vector<Result<std::string>>;
Result<Votes> vote(Comms& comms, const Result<void>& own, const std::string& payload);

// The first error in rank order, so that every rank comes to the very same one.
Result<void> first_error(const Votes& votes);

}  // namespace savegate::reference
