// Evidence of a small sound job, made up for tests of oracles: each test then spoils one thing.
//
//   JobBuilder job;                        // two ranks
//   job.life("save 2");                    // begins fresh
//   job.save(1); job.save(2);              // step = N, with events and trace of a sound protocol
//   job.end();                             // done, exit status 0; trees and checkpoints recorded
//   job.life("save 3"); job.save(3); job.end();
//   EXPECT_EQ(fail_together(job.evidence).outcome, …);
//
// Every step of the protocol is a method, so that a test can leave one out or add another.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/evidence.h"

namespace savegate::harness {

inline constexpr std::uint64_t kTick = 1'000'000;  // ns between two things that happen

class JobBuilder {
 public:
  explicit JobBuilder(int world = 2) {
    evidence.scenario.suite = "tests";
    evidence.scenario.name = "job";
    evidence.scenario.world = world;
    evidence.subject.name = "made-up";
    evidence.subject.reader = {"reader"};
    evidence.subject.step_pattern = "step_(\\d+)/";
    evidence.subject.claims.state = state_kinds();
    evidence.subject.claims.rng_streams = 4;
    evidence.subject.claims.durable = true;
    evidence.subject.claims.deterministic = true;
    evidence.subject.layout = {.shard = {"step_*/shard-*"},
                               .marker = {"step_*/marker"},
                               .pointer = {"latest"},
                               .auxiliary = {"step_*/state-*"},
                               .temporary = {"*.tmp"}};
    for (const std::string_view name : kProvenanceNames) {
      evidence.provenance.emplace(name, "not obtained");
    }
  }

  Evidence evidence;

  int world() const { return evidence.scenario.world; }
  Life& current() { return evidence.lives.back(); }
  Life& at(std::size_t index) { return evidence.lives[index]; }
  std::uint64_t now() { return clock_ += kTick; }

  // Begins a life: hello and resumed on every rank, at the newest step that was announced.
  Life& life(const std::string& until) {
    begin_life(until);
    for (int rank = 0; rank < world(); ++rank) resume(rank, announced_);
    return current();
  }

  // As life(), but without any resumed event.
  Life& begin_life(const std::string& until) {
    LifeSpec spec;
    spec.until = until;
    evidence.scenario.lives.push_back(spec);
    Life next;
    next.spec = spec;
    next.record.number = static_cast<int>(evidence.lives.size()) + 1;
    next.record.started_ns = now();
    next.record.tree_before = tree();
    next.events.resize(static_cast<std::size_t>(world()));
    for (int rank = 0; rank < world(); ++rank) {
      RankProcess process;
      process.rank = rank;
      process.pid = 100 * next.record.number + rank;
      process.start_ticks = static_cast<std::uint64_t>(process.pid);
      process.started_ns = next.record.started_ns;
      process.exit_status = 0;
      next.record.ranks.push_back(process);
    }
    evidence.lives.push_back(std::move(next));
    for (int rank = 0; rank < world(); ++rank) {
      Event& hello = event(rank, EventKind::kHello);
      hello.world = world();
      hello.pid = process(rank).pid;
      hello.device = "cpu";
    }
    return current();
  }

  Event& event(int rank, EventKind kind) {
    EventLog& log = current().events[static_cast<std::size_t>(rank)];
    Event made;
    made.kind = kind;
    made.rank = rank;
    made.time_ns = now();
    made.line = static_cast<int>(log.events.size()) + 1;
    log.events.push_back(made);
    return log.events.back();
  }

  Event& resume(int rank, std::optional<std::int64_t> step) {
    Event& resumed = event(rank, EventKind::kResumed);
    resumed.step = step;
    if (step) {
      resumed.path = directory(*step);
      resumed.items = items(rank, *step);
    }
    return resumed;
  }

  Event& refuse(int rank, const std::string& text) {
    Event& resumed = event(rank, EventKind::kResumed);
    resumed.ok = false;
    resumed.error.emplace().text = text;
    left(rank, 2);
    return resumed;
  }

  void update(std::int64_t step) {
    for (int rank = 0; rank < world(); ++rank) {
      Event& made = event(rank, EventKind::kUpdate);
      made.step = step;
      made.changed = true;
      const std::int64_t first = (step - 1) * world() + rank;
      made.samples = {{first, first}};
    }
  }

  // The N-th save, of step N, after the update that leads to it.
  void save(int number) {
    update(number);
    begin_save(number);
    write_files(number);
    publish_marker(number);
    publish_pointer(number);
    end_save(number);
  }

  void begin_save(int number) {
    for (int rank = 0; rank < world(); ++rank) begin_save_of(rank, number);
  }
  void begin_save_of(int rank, int number) {
    Event& begin = event(rank, EventKind::kSaveBegin);
    begin.step = number;
    begin.save = number;
    begin.items = items(rank, number);
  }

  void write_files(int number) {
    for (int rank = 0; rank < world(); ++rank) {
      publish(rank, shard(number, rank));
      publish(rank, fmt::format("{}/state-{}", directory(number), rank));
    }
    for (int rank = 0; rank < world(); ++rank) sync_directory(rank, directory(number));
  }
  void publish_marker(int number) {
    publish(0, marker(number));
    sync_directory(0, directory(number));
    complete_.insert(number);
  }
  void publish_pointer(int number) {
    publish(0, "latest");
    sync_directory(0, "");
    announced_ = number;
  }
  void end_save(int number) {
    for (int rank = 0; rank < world(); ++rank) end_save_of(rank, number);
  }
  Event& end_save_of(int rank, int number) {
    Event& end = event(rank, EventKind::kSaveEnd);
    end.step = number;
    end.save = number;
    return end;
  }
  Event& fail_save_of(int rank, int number, const EventError& error) {
    Event& end = end_save_of(rank, number);
    end.ok = false;
    end.error = error;
    left(rank, 1);
    return end;
  }

  // Temporary name, bytes, fsync, close, rename.
  void publish(int rank, const std::string& path) {
    const std::string temporary = path + ".tmp";
    operation(rank, faults::Op::kCreate, temporary);
    write(rank, temporary, 0, 4096);
    operation(rank, faults::Op::kFsync, temporary);
    operation(rank, faults::Op::kClose, temporary);
    operation(rank, faults::Op::kRename, temporary, path);
    files_.insert(path);
  }
  faults::TraceRecord& write(int rank, const std::string& path, std::uint64_t offset,
                             std::uint64_t bytes) {
    faults::TraceRecord& record = operation(rank, faults::Op::kWrite, path);
    record.offset = offset;
    record.requested = bytes;
    record.returned = bytes;
    record.effective = bytes;
    return record;
  }
  void sync_directory(int rank, const std::string& path) {
    operation(rank, faults::Op::kFsyncdir, path);
  }
  faults::TraceRecord& operation(int rank, faults::Op op, const std::string& path,
                                 const std::string& path2 = "") {
    faults::TraceRecord record;
    record.op = op;
    record.caller.rank = rank;
    record.caller.pid = static_cast<pid_t>(process(rank).pid);
    record.path = path;
    record.path2 = path2;
    record.file = std::hash<std::string>{}(path);
    record.begin_seq = ++sequence_;
    record.end_seq = ++sequence_;
    record.begin_ns = now();
    record.end_ns = now();
    current().trace.records.push_back(record);
    return current().trace.records.back();
  }
  // An operation that a rule made fail.
  faults::TraceRecord& failing(int rank, faults::Op op, const std::string& path, int error) {
    faults::TraceRecord& record = operation(rank, op, path);
    record.error = error;
    record.faulted = true;
    if (op == faults::Op::kWrite) record.requested = 4096;
    fired(rank, fmt::format("errno {}", savegate::errno_name(error)), op, path, error);
    return record;
  }

  faults::FiredRecord& fired(int rank, const std::string& action, faults::Op op,
                             const std::string& path, int error = 0) {
    faults::FiredRecord record;
    record.time_ns = now();
    record.rule = "rule";
    record.hit = current().fired.size() + 1;
    record.action = action;
    record.life = current().record.number;
    record.caller.rank = rank;
    record.op = op;
    record.path = path;
    record.error = error;
    current().fired.push_back(record);
    auto& rules = current().record.rules;
    if (rules.empty()) {
      rules.push_back({.life = record.life, .rule = "rule", .required = true, .hits = 0});
      faults::Rule rule;
      rule.name = "rule";
      current().spec.plan.rules.push_back(rule);
    }
    ++rules.front().hits;
    return current().fired.back();
  }

  RankProcess& process(int rank) { return current().record.ranks[static_cast<std::size_t>(rank)]; }
  void left(int rank, int status) {
    process(rank).exit_status = status;
    process(rank).ended_ns = now();
  }
  void kill(int rank) {
    fired(rank, "kill SIGKILL before", faults::Op::kWrite, "");
    process(rank).exit_status.reset();
    process(rank).signal = 9;
    process(rank).ended_by = "rule";
    process(rank).ended_ns = now();
  }
  void end_by_runner(int rank) {
    process(rank).exit_status.reset();
    process(rank).signal = 9;
    process(rank).ended_by = "runner: no progress for 30.0 s";
    current().record.hung = "no progress for 30.0 s";
    process(rank).ended_ns = now();
  }

  // The life ends, with `done` on every rank that has not left yet.
  void end() {
    for (int rank = 0; rank < world(); ++rank) {
      if (process(rank).ended_ns != 0) continue;
      event(rank, EventKind::kDone);
      left(rank, 0);
    }
    collect();
  }
  // What the runner collects after the ranks are gone.
  void collect() {
    Life& life = current();
    life.record.ended_ns = now();
    life.record.tree_after = tree();
    life.record.trace_records = life.trace.records.size();
    for (const int step : complete_) {
      Checkpoint checkpoint;
      checkpoint.path = directory(step);
      checkpoint.step = step;
      checkpoint.complete = true;
      checkpoint.announced = announced_ == step;
      for (int rank = 0; rank < world(); ++rank) {
        for (const Item& item : items(rank, step)) checkpoint.items.emplace_back(rank, item);
      }
      life.checkpoints.push_back(std::move(checkpoint));
    }
  }

  // The file is changed before the current life, which begin_life() has just begun.
  void tamper(const std::string& path) {
    current().record.tampered.push_back(fmt::format("flip {} byte 4096", path));
    for (FileEntry& entry : current().record.tree_before) {
      if (entry.path == path) entry.digest = std::string(32, 'f');
    }
  }
  void remove_file(const std::string& path) {
    current().record.tampered.push_back(fmt::format("remove {}", path));
    std::erase_if(current().record.tree_before,
                  [&](const FileEntry& entry) { return entry.path == path; });
  }

  static std::string directory(std::int64_t step) { return fmt::format("step_{}", step); }
  static std::string shard(std::int64_t step, int rank) {
    return fmt::format("step_{}/shard-{}", step, rank);
  }
  static std::string marker(std::int64_t step) { return fmt::format("step_{}/marker", step); }

  static Item item(const std::string& name, const std::string& kind, int rank, std::int64_t step) {
    Item made;
    made.name = name;
    made.kind = kind;
    made.scope = "rank";
    made.dtype = "f32";
    made.global_shape = {4};
    made.local_shape = {4};
    made.offset = {0};
    made.bytes = 16;
    made.digest = fmt::format("{:016x}{:08x}{:08x}", std::hash<std::string>{}(name), rank, step);
    return made;
  }
  static std::vector<Item> items(int rank, std::int64_t step) {
    std::vector<Item> made = {
        item("weight", "parameter", rank, step), item("moment", "optimizer", rank, step),
        item("rate", "scheduler", rank, step), item("step", "counter", rank, step)};
    for (int stream = 0; stream < 4; ++stream) {
      made.push_back(item(fmt::format("rng.{}", stream), "rng", rank, step));
    }
    return made;
  }

 private:
  std::vector<FileEntry> tree() const {
    std::vector<FileEntry> entries;
    for (const std::string& path : files_) {
      entries.push_back({.path = path, .type = 'f', .size = 4096, .digest = std::string(32, 'a')});
    }
    return entries;
  }

  std::uint64_t clock_ = 0;
  std::uint64_t sequence_ = 0;
  std::set<std::string> files_;
  std::set<int> complete_;
  std::optional<std::int64_t> announced_;
};

// Two lives: two saves, then a resume and a third.
inline JobBuilder sound_job() {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.save(2);
  job.end();
  job.life("save 3");
  job.save(3);
  job.end();
  return job;
}

}  // namespace savegate::harness
