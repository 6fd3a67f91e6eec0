#include "scenarios/subjects/reference/program.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "scenarios/subjects/reference/file_writer.h"

namespace savegate::reference {
namespace {

class Run {
 public:
  Run(const Options& options, const Parts& parts, worker::Worker& worker, Reporter& reporter,
      Job& job)
      : options_(options),
        worker_(worker),
        reporter_(reporter),
        job_(job),
        saver_(parts.saver(job)),
        restorer_(parts.restorer(job)),
        training_(parts.training(job)) {}

  int run() {
    auto created = State::create(job_.backend, job_.rank, job_.world, options_.state_bytes);
    if (!created) return leave(created.error(), kRefused);
    state_ = std::move(*created);
    auto ready = worker_.environment().life == 1 ? start_fresh() : resume();
    if (!ready) return leave(ready.error(), kRefused);
    auto trained = train();
    if (!trained) return leave(trained.error(), kFailed);
    worker_.done();
    return reporter_.exit_status(kDone);
  }

 private:
  int leave(const Status& error, int status) {
    std::fprintf(stderr, "savegate-reference: rank %d: %s\n", job_.rank,
                 reporter_.shown(error).to_string().c_str());
    return reporter_.exit_status(status);
  }

  // From the first moment there is a pointer, so that a later life never has to guess what its
  // absence means.
  Result<void> start_fresh() {
    SAVEGATE_TRY(const Votes votes, vote(job_.comms, write_first_pointer(), ""));
    SAVEGATE_CHECK(first_error(votes));
    SAVEGATE_CHECK(state_.start(job_.backend, job_.rank));
    saver_->begin_life(kNoCheckpoint);
    SAVEGATE_CHECK(training_->begin(state_));
    worker_.resumed({});
    return {};
  }

  Result<void> write_first_pointer() {
    if (job_.rank != 0) return {};
    const std::string pointer = job_.path(kPointerName);
    SAVEGATE_TRY(const bool there, job_.files.exists(pointer));
    if (there) {
      return fail(
          invalid("a fresh start where checkpoints are: set SAVEGATE_LIFE=2 to resume", pointer));
    }
    SAVEGATE_CHECK(write_file(job_.files, pointer, std::string(kNoCheckpoint) + "\n"));
    return {};
  }

  Result<void> resume() {
    worker_.load_begin();
    auto step = restorer_->restore(state_);
    const std::string name = restorer_->resolved();
    if (!step) {
      worker_.load_refused(name, reporter_.shown(step.error()));
      return fail(step.error());
    }
    saver_->begin_life(name.empty() ? kNoCheckpoint : name);
    worker::Resumed resumed{.step = *step, .path = *step ? name : "", .items = {}};
    if (*step) {
      SAVEGATE_TRY(resumed.items, items());
    }
    worker_.resumed(resumed);
    worker_.memory(state_.counters.global_step, "load", reporter_.memory());
    return training_->begin(state_);
  }

  Result<std::vector<worker::Item>> items() {
    SAVEGATE_TRY(auto digested, digest_items(job_.backend, state_, job_.contract));
    return reporter_.shown(std::move(digested));
  }

  bool finished() const {
    const auto last = static_cast<std::int64_t>(options_.contract.total_steps);
    const auto until = worker_.environment().until_save();
    return state_.counters.global_step >= (until ? *until : last);
  }

  // A save point follows every step, so save N is that of step N.
  Result<void> train() {
    while (!finished()) {
      SAVEGATE_TRY(const StepReport report, training_->step(state_));
      worker_.update(state_.counters.global_step, report.changed, report.samples);
      SAVEGATE_CHECK(save());
    }
    return {};
  }

  // Once the pointer names the checkpoint the save has succeeded, whatever becomes of the old ones.
  Result<void> save() {
    const std::int64_t step = state_.counters.global_step;
    const int number = static_cast<int>(step);
    SAVEGATE_TRY(const auto digested, items());
    worker_.save_begin(step, number, digested);
    auto saved = saver_->save(state_);
    if (!saved) {
      worker_.save_end(step, number, fail(reporter_.shown(saved.error())));
      return saved;
    }
    auto rotated = saver_->rotate();
    worker_.save_end(step, number, saved);
    worker_.durable(step, number, saved);
    worker_.memory(step, "save", reporter_.memory());
    return rotated;
  }

  const Options& options_;
  worker::Worker& worker_;
  Reporter& reporter_;
  Job& job_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<Restorer> restorer_;
  std::unique_ptr<Training> training_;
  State state_;
};

// How much longer the slowest rank may take than the fastest grows with what they write.
std::chrono::milliseconds patience(const Options& options, int world) {
  constexpr std::uint64_t kBytesPerMillisecond = (64 << 20) / 1000;
  const std::uint64_t bytes = options.state_bytes / static_cast<std::uint64_t>(world);
  return options.collective_timeout + std::chrono::milliseconds(bytes / kBytesPerMillisecond);
}

Result<std::unique_ptr<gpu::Collectives>> meet_peers(const worker::Environment& environment,
                                                     std::chrono::milliseconds timeout) {
  if (environment.world == 1) return nullptr;
  if (environment.rendezvous.empty()) {
    return fail(invalid("several ranks need SAVEGATE_RENDEZVOUS, an empty directory to meet in"));
  }
  return gpu::open_gloo({.rank = environment.rank,
                         .world = environment.world,
                         .rendezvous = environment.rendezvous,
                         .timeout = timeout});
}

int refuse(Reporter& reporter, const Status& error) {
  std::fprintf(stderr, "savegate-reference: %s\n", error.to_string().c_str());
  return reporter.exit_status(kRefused);
}

}  // namespace

worker::Memory Reporter::memory() {
  worker::Memory facts = {{"host_rss", std::nullopt},
                          {"host_rss_peak", std::nullopt},
                          {"gpu_allocated", std::nullopt},
                          {"gpu_reserved", std::nullopt},
                          {"gpu_free", std::nullopt}};
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (statm >> size >> resident) {
    facts["host_rss"] = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    facts["host_rss_peak"] = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  }
  return facts;
}

Parts sound_parts() {
  Parts parts;
  parts.files = [](int rank) { return std::make_unique<Files>(rank); };
  parts.saver = [](Job& job) { return std::make_unique<Saver>(job); };
  parts.restorer = [](Job& job) { return std::make_unique<Restorer>(job); };
  parts.training = [](Job& job) { return std::make_unique<Training>(job); };
  parts.reporter = [](worker::Worker& worker) { return std::make_unique<Reporter>(worker); };
  return parts;
}

int run_program(const Options& options, const Parts& parts) {
  worker::Worker worker = worker::Worker::from_environment();
  const worker::Environment& environment = worker.environment();
  const auto reporter = parts.reporter(worker);
  reporter->hello();
  auto backend = gpu::open_backend(environment.device);
  if (!backend) return refuse(*reporter, backend.error());
  auto peers = meet_peers(environment, patience(options, environment.world));
  if (!peers) return refuse(*reporter, peers.error());
  Comms comms(std::move(*peers), worker);
  const auto files = parts.files(environment.rank);
  Job job{.rank = environment.rank,
          .world = environment.world,
          .root = environment.directory,
          .comms = comms,
          .worker = worker,
          .files = *files,
          .backend = **backend,
          .contract = options.contract};
  return Run(options, parts, worker, *reporter, job).run();
}

}  // namespace savegate::reference
