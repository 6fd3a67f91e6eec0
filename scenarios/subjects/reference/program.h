// The program: start or resume, train and save until it is told to stop, say what happened.
//
// It is put together from parts; a negative control replaces one of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/worker/worker.h"
#include "scenarios/subjects/reference/exporter.h"
#include "scenarios/subjects/reference/job.h"
#include "scenarios/subjects/reference/reporter.h"
#include "scenarios/subjects/reference/restore.h"
#include "scenarios/subjects/reference/save.h"
#include "scenarios/subjects/reference/staging.h"
#include "scenarios/subjects/reference/step_log.h"
#include "scenarios/subjects/reference/training.h"

namespace savegate::reference {

struct Options {
  std::uint64_t state_bytes = 8 << 20;  // of all ranks together
  std::chrono::milliseconds collective_timeout{5000};
  int expert_parallel = 1;
  bool asynchronous = false;
  std::size_t most_in_flight = 1;  // asynchronous saves that are not durable yet
  bool writer_process = false;     // as in Job
  bool through_copy = false;
  std::uint64_t step_bytes = 0;
  bool step_log = false;
  int format = kNewestFormat;  // as in Job
  Contract contract;
};

struct Parts {
  std::function<std::unique_ptr<Files>(int rank)> files;
  std::function<std::unique_ptr<Saver>(Job&)> saver;
  std::function<std::unique_ptr<Staging>(gpu::Backend& device)> staging;
  std::function<std::unique_ptr<Restorer>(Job&)> restorer;
  std::function<std::unique_ptr<Training>(Job&)> training;
  std::function<std::unique_ptr<StepLog>(Job&)> step_log;
  std::function<std::unique_ptr<Exporter>(gpu::Backend& backend)> exporter;
  std::function<std::unique_ptr<Reporter>(worker::Worker&)> reporter;
};
Parts sound_parts();

// Exit statuses.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;   // a save failed, or a peer is gone
inline constexpr int kRefused = 2;  // the load, or the use

int run_program(const Options& options, const Parts& parts);

}  // namespace savegate::reference
