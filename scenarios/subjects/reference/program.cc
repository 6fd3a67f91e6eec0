#include "scenarios/subjects/reference/program.h"

#include <cstdio>
#include <filesystem>

#include "scenarios/subjects/reference/asynchronous_saves.h"
#include "scenarios/subjects/reference/child_saver.h"
#include "scenarios/subjects/reference/file_writer.h"
#include "scenarios/subjects/reference/wake.h"

namespace savegate::reference {
namespace {

class Run {
 public:
  Run(const Options& options, const Parts& parts, worker::Worker& worker, Reporter& reporter,
      Job& job, Saves& saves)
      : options_(options),
        worker_(worker),
        reporter_(reporter),
        job_(job),
        saves_(saves),
        restorer_(parts.restorer(job)),
        training_(parts.training(job)),
        step_log_(parts.step_log(job)),
        exporter_(parts.exporter(job.backend)) {}

  int run() {
    auto created = State::create(job_.backend, job_.placement(), options_.state_bytes);
    if (!created) return leave(created.error(), kRefused);
    state_ = std::move(*created);
    auto built = exporter_->built(state_);
    if (!built) return leave(built.error(), kRefused);
    auto ready = worker_.environment().life == 1 ? start_fresh() : resume();
    if (!ready) return leave(ready.error(), kRefused);
    auto trained = train();
    if (trained) trained = saves_.drain();
    if (!trained) return leave(trained.error(), kFailed);
    worker_.done();
    return reporter_.exit_status(kDone);
  }

 private:
  int leave(const Status& error, int status) {
    remember("failure");
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
    exporter_->loaded();
    saves_.begin_life(kNoCheckpoint);
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
    remember("before load");
    worker_.load_begin();
    auto step = restorer_->restore(state_);
    const std::string name = restorer_->resolved();
    if (!step) {
      worker_.load_refused(name, reporter_.shown(step.error()));
      return fail(step.error());
    }
    exporter_->loaded();
    saves_.begin_life(name.empty() ? kNoCheckpoint : name);
    worker::Resumed resumed{.step = *step, .path = *step ? name : "", .items = {}};
    if (*step) {
      SAVEGATE_TRY(resumed.items, items());
    }
    worker_.resumed(resumed);
    remember("load");
    if (*step) SAVEGATE_CHECK(export_weights());
    return training_->begin(state_);
  }

  worker::Memory facts() {
    worker::Memory facts = reporter_.memory(job_.backend);
    saves_.add_facts(facts);
    return facts;
  }

  void remember(const char* phase) { worker_.memory(state_.counters.global_step, phase, facts()); }

  Result<void> export_weights() {
    remember("before export");
    SAVEGATE_TRY(const gpu::Digest digest, exporter_->digest(state_));
    worker_.exported(state_.counters.global_step, digest.hex());
    remember("export");
    return {};
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
    SAVEGATE_CHECK(step_log_->begin());
    while (!finished()) {
      SAVEGATE_TRY(const StepReport report, training_->step(state_));
      saves_.tidy();
      exporter_->updated();
      worker_.update(state_.counters.global_step, report.changed, report.samples);
      SAVEGATE_CHECK(step_log_->add(state_.counters.global_step));
      remember("update");
      SAVEGATE_CHECK(export_weights());
      SAVEGATE_CHECK(save());
    }
    return {};
  }

  Result<void> save() {
    SAVEGATE_CHECK(saves_.await_room());
    const std::int64_t step = state_.counters.global_step;
    worker::Memory before = facts();
    add_wakeable(job_, before);
    worker_.memory(step, "before save", before);
    SAVEGATE_TRY(const auto digested, items());
    worker_.save_begin(step, static_cast<int>(step), digested);
    return saves_.save(state_);
  }

  const Options& options_;
  worker::Worker& worker_;
  Reporter& reporter_;
  Job& job_;
  Saves& saves_;
  std::unique_ptr<Restorer> restorer_;
  std::unique_ptr<Training> training_;
  std::unique_ptr<StepLog> step_log_;
  std::unique_ptr<Exporter> exporter_;
  State state_;
};

// How much longer the slowest rank may take than the fastest grows with what they write.
std::chrono::milliseconds patience(const Options& options, int world) {
  constexpr std::uint64_t kBytesPerMillisecond = (64 << 20) / 1000;
  const std::uint64_t bytes = options.state_bytes / static_cast<std::uint64_t>(world);
  return options.collective_timeout + std::chrono::milliseconds(bytes / kBytesPerMillisecond);
}

// The ranks meet in `directory`, once for each communicator.
Result<std::unique_ptr<gpu::Collectives>> meet_peers(const worker::Environment& environment,
                                                     const std::string& directory,
                                                     std::chrono::milliseconds timeout) {
  if (environment.world == 1) return nullptr;
  if (environment.rendezvous.empty()) {
    return fail(invalid("several ranks need SAVEGATE_RENDEZVOUS, an empty directory to meet in"));
  }
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return fail(system_error("mkdir", directory, error.value()));
  return gpu::open_gloo({.rank = environment.rank,
                         .world = environment.world,
                         .rendezvous = directory,
                         .timeout = timeout});
}

Result<std::unique_ptr<Saves>> make_saves(const Options& options, const Parts& parts,
                                          Reporter& reporter, Job& job) {
  if (!options.asynchronous) {
    return std::make_unique<SynchronousSaves>(job, reporter, parts.saver(job));
  }
  const worker::Environment& environment = job.worker.environment();
  WriterParts writer;
  SAVEGATE_TRY(writer.host, gpu::open_backend("cpu"));
  SAVEGATE_TRY(auto peers, meet_peers(environment, environment.rendezvous + "/saves",
                                      patience(options, environment.world)));
  writer.worker = std::make_unique<worker::Worker>(environment);
  writer.comms = std::make_unique<Comms>(std::move(peers), *writer.worker, "saves");
  writer.job = std::make_unique<Job>(Job{.rank = job.rank,
                                         .world = job.world,
                                         .root = job.root,
                                         .comms = *writer.comms,
                                         .worker = *writer.worker,
                                         .files = job.files,
                                         .backend = *writer.host,
                                         .contract = job.contract,
                                         .expert_parallel = job.expert_parallel,
                                         .format = job.format});
  writer.saver = parts.saver(*writer.job);
  writer.staging = parts.staging(job.backend);
  return std::make_unique<AsynchronousSaves>(job, reporter, std::move(writer),
                                             options.most_in_flight);
}

// Null where the devices have no collectives of their own, or there is one rank.
Result<std::unique_ptr<gpu::Collectives>> meet_devices(gpu::Backend& backend,
                                                       gpu::Collectives* peers,
                                                       std::chrono::milliseconds timeout) {
  if (peers == nullptr) return nullptr;
  return backend.open_collectives(*peers, timeout);
}

int refuse(Reporter& reporter, const Status& error) {
  std::fprintf(stderr, "savegate-reference: %s\n", error.to_string().c_str());
  return reporter.exit_status(kRefused);
}

}  // namespace

Parts sound_parts() {
  Parts parts;
  parts.files = [](int rank) { return std::make_unique<Files>(rank); };
  parts.saver = [](Job& job) -> std::unique_ptr<Saver> {
    if (job.writer_process) return std::make_unique<ChildSaver>(job);
    return std::make_unique<Saver>(job);
  };
  parts.staging = [](gpu::Backend& device) { return std::make_unique<Staging>(device); };
  parts.restorer = [](Job& job) { return std::make_unique<Restorer>(job); };
  parts.training = [](Job& job) { return std::make_unique<Training>(job); };
  parts.step_log = [](Job& job) { return std::make_unique<StepLog>(job); };
  parts.exporter = [](gpu::Backend& backend) { return std::make_unique<Exporter>(backend); };
  parts.reporter = [](worker::Worker& worker) { return std::make_unique<Reporter>(worker); };
  return parts;
}

int run_program(const Options& options, const Parts& parts) {
  worker::Worker worker = worker::Worker::from_environment();
  const worker::Environment& environment = worker.environment();
  const auto reporter = parts.reporter(worker);
  reporter->hello();
  auto backend = gpu::open_backend(environment.device, environment.rank);
  if (!backend) return refuse(*reporter, backend.error());
  std::optional<WakeProbe> wake_probe;
  if (!environment.wake_probe.empty()) {
    auto started = WakeProbe::start(environment);
    if (!started) return refuse(*reporter, started.error());
    wake_probe.emplace(std::move(*started));
  }
  auto peers =
      meet_peers(environment, environment.rendezvous, patience(options, environment.world));
  if (!peers) return refuse(*reporter, peers.error());
  auto devices = meet_devices(**backend, peers->get(), patience(options, environment.world));
  if (!devices) return refuse(*reporter, devices.error());
  Comms comms(std::move(*peers), worker);
  const bool own_ways = *devices != nullptr;
  Comms device_comms(std::move(*devices), worker, "device");
  const auto files = parts.files(environment.rank);
  Job job{.rank = environment.rank,
          .world = environment.world,
          .root = environment.directory,
          .comms = comms,
          .worker = worker,
          .files = *files,
          .backend = **backend,
          .contract = options.contract,
          .expert_parallel = options.expert_parallel,
          .format = options.format,
          .device_comms = own_ways ? &device_comms : nullptr,
          .wake_probe = wake_probe ? &*wake_probe : nullptr,
          .writer_process = options.writer_process,
          .through_copy = options.through_copy,
          .step_log = options.step_log,
          .step_bytes = options.step_bytes};
  auto saves = make_saves(options, parts, *reporter, job);
  if (!saves) return refuse(*reporter, saves.error());
  return Run(options, parts, worker, *reporter, job, **saves).run();
}

}  // namespace savegate::reference
