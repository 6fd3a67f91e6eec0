#include "harness/run/life_runner.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <sstream>

#include "faults/fired.h"
#include "faults/toml.h"
#include "faults/trace.h"
#include "harness/run/daemon.h"
#include "harness/run/files.h"
#include "harness/run/fork_server.h"
#include "harness/run/python.h"
#include "harness/run/rank_launch.h"
#include "harness/run/rendezvous_port.h"
#include "harness/run/tamper.h"
#include "harness/run/tree_listing.h"
#include "harness/worker/neighbour_process.h"

namespace savegate::harness {
namespace {

class LifeRunner {
 public:
  explicit LifeRunner(const LifeSetup& setup)
      : setup_(setup), spec_(setup.scenario.lives[static_cast<std::size_t>(setup.number - 1)]) {
    const std::string number = std::to_string(setup.number);
    places_.mount = setup.scratch + "/m" + number;
    places_.control = setup.scratch + "/c" + number;
    places_.rendezvous = setup.scratch + "/r" + number;
    places_.events = setup.folder + "/events";
    places_.ranks = setup.folder + "/ranks";
    places_.logs = setup.folder + "/logs";
    record_.number = setup.number;
    record_.directory = places_.mount;
  }

  Result<LifeRecord> run();

 private:
  Result<void> prepare();
  Result<void> tamper();
  Result<void> live();
  Result<void> limit_memory();
  Result<void> start_daemon();
  Watch make_watch();
  void fill_device(const std::string& rule, int rank);
  Result<void> let_go(const std::string& rule);
  Result<void> collect_from_daemon();
  void count_losses();
  Result<void> find_records();
  Result<void> collect_trees();
  Result<void> start_reader(std::optional<Process>& reader);
  void finish_reader(Process& reader);

  const LifeSetup& setup_;
  const LifeSpec& spec_;
  RankPlaces places_;
  std::optional<JobCgroup> cgroup_;  // goes after all that run in it
  std::unique_ptr<Daemon> daemon_;
  std::vector<worker::NeighbourProcess> hogs_;
  Result<void> hogged_;
  std::optional<MemoryGuard> guard_;
  std::optional<MemorySampler> memory_;
  LifeRecord record_;
};

std::string toml_strings(const std::vector<std::string>& words) {
  std::string text = "[";
  for (const std::string& word : words)
    text += (text.size() > 1 ? ", " : "") + faults::toml_string(word);
  return text + "]";
}

std::string print_layout(const faults::Layout& layout) {
  return "[layout]\nshard = " + toml_strings(layout.shard) +
         "\nmarker = " + toml_strings(layout.marker) +
         "\npointer = " + toml_strings(layout.pointer) +
         "\nauxiliary = " + toml_strings(layout.auxiliary) +
         "\ntemporary = " + toml_strings(layout.temporary) + "\n";
}

Result<void> LifeRunner::prepare() {
  for (const std::string& directory : {places_.mount, places_.rendezvous, places_.events,
                                       places_.logs, places_.ranks, setup_.backing}) {
    SAVEGATE_CHECK(make_directories(directory));
  }
  SAVEGATE_CHECK(write_file(setup_.folder + "/plan.toml", print_plan(spec_.plan)));
  return write_file(setup_.folder + "/layout.toml", print_layout(setup_.subject.layout));
}

Result<void> LifeRunner::tamper() {
  for (const Tamper& change : spec_.tamper) {
    auto done = apply_tamper(change, setup_.subject, setup_.backing);
    // An earlier life may have left no such file: that is for the oracles to see.
    record_.tampered.push_back(done ? *done : "not done: " + done.error().to_string());
  }
  SAVEGATE_TRY(record_.tree_before, list_tree(setup_.backing));
  return {};
}

// A life that was killed may have left half a line at the end of a log, which the next one may cut
// off: whole lines are to survive.
Result<void> LifeRunner::find_records() {
  for (const std::string& pattern : setup_.subject.records) {
    const faults::Glob glob(pattern);
    for (const FileEntry& entry : record_.tree_before) {
      if (entry.type != 'f' || !glob.matches(entry.path)) continue;
      const std::string path = setup_.backing + "/" + entry.path;
      RecordKept record;
      record.path = entry.path;
      SAVEGATE_TRY(record.bytes, bytes_to_be_kept(path));
      SAVEGATE_TRY(record.digest, digest_start(path, record.bytes));
      record_.records.push_back(std::move(record));
    }
  }
  return {};
}

Result<void> LifeRunner::start_daemon() {
  DaemonSpec spec;
  spec.program = setup_.options.bin + "/savegate-fs";
  spec.backing = setup_.backing;
  spec.mount = places_.mount;
  spec.control = places_.control;
  spec.plan = setup_.folder + "/plan.toml";
  spec.layout = setup_.folder + "/layout.toml";
  spec.trace = setup_.folder + "/trace.bin";
  spec.fired = setup_.folder + "/fired.jsonl";
  spec.log = places_.logs + "/savegate-fs.log";
  spec.life = setup_.number;
  SAVEGATE_TRY(daemon_, Daemon::start(spec));
  return {};
}

Watch LifeRunner::make_watch() {
  const Outcome expected = spec_.expect.outcome;
  const bool leaves_after_failure = setup_.subject.on_save_failure == "exit";
  Watch watch;
  watch.events_directory = places_.events;
  watch.fired_path = setup_.folder + "/fired.jsonl";
  watch.world = setup_.scenario.world;
  if (setup_.subject.launcher != "direct") watch.ranks_directory = places_.ranks;
  watch.within_ns = spec_.expect.within_ns;
  watch.no_progress_ns = setup_.options.no_progress_ns.value_or(spec_.no_progress_ns);
  watch.start_ns = setup_.subject.start_ns;
  // A fault that the save path is to ride out (EINTR, a short write) starts no deadline.
  watch.fault_is_failure =
      leaves_after_failure && expected != Outcome::kComplete && expected != Outcome::kAny;
  watch.report_is_failure = leaves_after_failure;
  watch.expects_held = expected == Outcome::kHeld;
  watch.on_hold = [this](const std::string& rule, int rank) { fill_device(rule, rank); };
  watch.memory = &*memory_;
  watch.guard = guard_ ? &*guard_ : nullptr;
  watch.daemon_pidfd = daemon_->pidfd();
  watch.operations = [this]() -> std::optional<std::uint64_t> {
    const auto statistics = daemon_->statistics();
    if (!statistics) return std::nullopt;  // its death is seen through the pidfd
    return statistics->working_operations;
  };
  watch.abort_mount = [this] { daemon_->abort(); };
  if (setup_.options.progress) {
    watch.progress = [this](LifeProgress progress) {
      progress.scenario = setup_.scenario.name;
      progress.life = setup_.number;
      progress.until = spec_.until;
      setup_.options.progress(progress);
    };
  }
  return watch;
}

// The rule lets go whatever became of the hog: the life then ends, and says so.
void LifeRunner::fill_device(const std::string& rule, int rank) {
  if (rule != spec_.hog.at) return;
  const auto fill = [&]() -> Result<void> {
    SAVEGATE_TRY(auto hog, worker::NeighbourProcess::start(
                               neighbour_program(setup_), setup_.options.device, rank,
                               "SAVEGATE_RENDEZVOUS=" + places_.rendezvous));
    SAVEGATE_TRY(const std::uint64_t left, hog.ask("leave " + std::to_string(spec_.hog.headroom)));
    record_.hogged.push_back("rank " + std::to_string(rank) + ": " + std::to_string(left) +
                             " bytes left free");
    hogs_.push_back(std::move(hog));
    return {};
  };
  if (hogged_) hogged_ = fill();
  auto released = let_go(rule);
  if (hogged_) hogged_ = released;
}

// A hold is on record a moment before there is anything to release. A rank that has died in it is
// held no more.
Result<void> LifeRunner::let_go(const std::string& rule) {
  const std::uint64_t deadline = monotonic_ns() + kSecond;
  while (monotonic_ns() < deadline) {
    SAVEGATE_TRY(const std::uint64_t released, daemon_->release(rule));
    if (released > 0) break;
  }
  return {};
}

Result<void> LifeRunner::limit_memory() {
  if (!spec_.memory.any()) return {};
  SAVEGATE_TRY(JobCgroup made, JobCgroup::create(setup_.scenario.world));
  cgroup_.emplace(std::move(made));
  places_.cgroup = &*cgroup_;
  SAVEGATE_CHECK(cgroup_->add_file_system(daemon_->pid()));
  if (spec_.memory.enforced_by == MemoryLimit::EnforcedBy::kKernel) {
    SAVEGATE_CHECK(cgroup_->limit_ranks(spec_.memory.bytes));
  } else if (spec_.memory.enforced_by == MemoryLimit::EnforcedBy::kGuard) {
    guard_.emplace(cgroup_->job(), cgroup_->file_system(), spec_.memory.allowed());
  }
  return {};
}

Result<void> LifeRunner::live() {
  SAVEGATE_CHECK(start_daemon());
  SAVEGATE_CHECK(limit_memory());
  SAVEGATE_TRY(const RendezvousPort port, RendezvousPort::lease());
  places_.port = port.number();
  SAVEGATE_TRY(std::vector<WatchedRank> ranks, launch_ranks(setup_, places_));
  SAVEGATE_TRY(memory_, MemorySampler::create(setup_.folder + "/memory.jsonl", places_.cgroup));
  Supervisor supervisor(make_watch(), std::move(ranks));
  SAVEGATE_TRY(Supervision supervision, supervisor.run());
  SAVEGATE_CHECK(memory_->finish());
  hogs_.clear();
  SAVEGATE_CHECK(hogged_);
  record_.ranks = std::move(supervision.ranks);
  record_.hung = std::move(supervision.hung);
  record_.first_failure_ns = supervision.first_failure_ns;
  record_.stray = std::move(supervision.stray);
  record_.daemon_died = supervision.daemon_died;
  return {};
}

// A daemon that dies is evidence: the rules are then not counted, and the oracles say so.
Result<void> LifeRunner::collect_from_daemon() {
  record_.daemon_died = record_.daemon_died || daemon_->died();
  if (!record_.daemon_died) {
    if (auto statistics = daemon_->statistics()) record_.rules = std::move(statistics->rules);
  }
  auto stopped = daemon_->stop();
  record_.daemon_died = record_.daemon_died || daemon_->died();
  if (!stopped && !record_.daemon_died) return fail(std::move(stopped).error());
  count_losses();
  if (const auto trace = faults::read_trace(setup_.folder + "/trace.bin")) {
    record_.trace_records = trace->records.size();
  }
  return {};
}

// What a rule loses is lost when the mount ends, after the daemon was asked for its counts.
void LifeRunner::count_losses() {
  const auto lines = read_file(setup_.folder + "/fired.jsonl");
  for (const faults::Rule& rule : spec_.plan.rules) {
    const auto counted =
        std::find_if(record_.rules.begin(), record_.rules.end(),
                     [&](const reports::FiredCount& count) { return count.rule == rule.name; });
    if (!std::holds_alternative<faults::LoseAction>(rule.action)) continue;
    if (!lines || counted == record_.rules.end()) continue;
    std::istringstream in(*lines);
    for (std::string line; std::getline(in, line);) {
      const auto fired = faults::fired_from_json_line(line);
      if (fired && fired->rule == rule.name) ++counted->hits;
    }
  }
}

Result<void> LifeRunner::start_reader(std::optional<Process>& reader) {
  if (setup_.subject.reader.empty()) {
    record_.reader_error = "not obtained: the subject has no reader command";
    return {};
  }
  SAVEGATE_TRY(const std::vector<std::string> command,
               expand_command(setup_.subject.reader, command_values(setup_)));
  const std::string output = setup_.folder + "/checkpoints.jsonl";
  const std::string errors = places_.logs + "/reader.log";
  const UniqueFd output_fd(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const UniqueFd errors_fd(::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!output_fd) return fail(system_error("create", output));
  if (!errors_fd) return fail(system_error("create", errors));
  SpawnRequest request;
  request.command = command;
  request.environment = environment_with(
      {"SAVEGATE_DIR=" + setup_.backing, python_path(setup_.options.bin),
       "SAVEGATE_LIBRARY=" + setup_.options.bin + "/../lib/libsavegate_worker.so"});
  request.output = output_fd.get();
  request.errors = errors_fd.get();
  ForkServers* servers = setup_.options.fork_servers;
  auto spawned = servers != nullptr ? servers->spawn(request) : Process::spawn(request);
  if (!spawned) {
    record_.reader_error = "not obtained: " + spawned.error().to_string();
    return {};
  }
  reader.emplace(std::move(*spawned));
  return {};
}

void LifeRunner::finish_reader(Process& reader) {
  const std::uint64_t limit = setup_.options.no_progress_ns.value_or(spec_.no_progress_ns);
  const auto status = reader.wait_for(limit);
  if (!status) {
    reader.kill_group(SIGKILL);
    reader.wait_for(1'000'000'000);
    record_.reader_error = "not obtained: the reader did not end in time";
  } else if (status->code != 0) {
    const auto said = read_file(places_.logs + "/reader.log");
    record_.reader_error = "not obtained: the reader ended with " +
                           (status->code ? "exit status " + std::to_string(*status->code)
                                         : "signal " + std::to_string(*status->signal)) +
                           (said && !said->empty() ? ": " + said->substr(0, 500) : "");
  }
}

Result<void> LifeRunner::collect_trees() {
  std::optional<Process> reader;
  SAVEGATE_CHECK(start_reader(reader));
  auto tree = list_tree(setup_.backing);
  if (reader) finish_reader(*reader);
  if (!tree) return fail(std::move(tree).error());
  record_.tree_after = std::move(*tree);
  for (RecordKept& record : record_.records) {
    SAVEGATE_TRY(record.digest_after,
                 digest_start(setup_.backing + "/" + record.path, record.bytes));
  }
  return {};
}

Result<LifeRecord> LifeRunner::run() {
  record_.started_ns = monotonic_ns();
  SAVEGATE_CHECK(prepare());
  SAVEGATE_CHECK(tamper());
  SAVEGATE_CHECK(find_records());
  SAVEGATE_CHECK(live());
  SAVEGATE_CHECK(collect_from_daemon());
  SAVEGATE_CHECK(collect_trees());
  record_.ended_ns = monotonic_ns();
  SAVEGATE_CHECK(write_file(setup_.folder + "/life.json", print_life(record_)));
  return std::move(record_);
}

}  // namespace

std::string neighbour_program(const LifeSetup& setup) {
  return setup.options.bin + "/savegate-neighbour";
}

std::map<std::string, std::string> command_values(const LifeSetup& setup) {
  std::map<std::string, std::string> values = setup.subject.variables;
  for (const auto& [name, value] : setup.scenario.variables) values[name] = value;
  values["bin"] = setup.options.bin;
  values["python"] = python_program(setup.options.bin);
  values["subject"] = setup.subject.directory;
  values["dir"] = setup.backing;
  values["device"] = setup.options.device;
  values["world"] = std::to_string(setup.scenario.world);
  return values;
}

Result<LifeRecord> run_life(const LifeSetup& setup) { return LifeRunner(setup).run(); }

}  // namespace savegate::harness
