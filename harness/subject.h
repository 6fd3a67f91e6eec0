// A subject: the program under test, from its subject.toml.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "faults/layout.h"
#include "faults/status.h"

namespace savegate::harness {

// What --device may say.
const std::vector<std::string>& device_names();

// The kinds of items that an exact resume takes.
const std::vector<std::string>& state_kinds();

struct Claims {
  std::vector<std::string> state;  // the kinds that its checkpoints hold; R2 demands these
  int rng_streams = 0;             // items of kind rng that each rank saves, at least
  bool deterministic = false;      // the same step reached twice has the same bytes
  bool durable = false;            // fsyncs what it announces (F6, F9 are judged in full)
  bool async = false;
  bool rotation = false;
  bool exports = false;
  bool fallback = false;  // a damaged newest checkpoint may be answered by an older complete one
};

struct Subject {
  std::string name;
  std::string summary;
  std::string directory;             // of subject.toml; {subject} in commands
  std::string toml;                  // its text, kept with the evidence
  std::vector<std::string> command;  // {bin}, {subject}, {NAME of a variable} are expanded
  std::vector<std::string> reader;  // also {dir}; prints one JSON line a checkpoint, see evidence.h
  std::vector<std::string> devices = {"cpu"};
  std::vector<int> worlds;               // empty: any
  std::string on_save_failure = "exit";  // "exit" | "continue"
  faults::Layout layout;                 // empty patterns: unknown
  std::string step_pattern;              // regular expression on a path; group 1 is the step
  int shards_per_rank = 1;               // of each rank that writes
  std::vector<int> writers;              // ranks that write checkpoints; empty: all
  std::vector<std::string> records;      // globs of files beside the checkpoints: metrics, logs
  std::int64_t keep_every = 0;           // steps whose checkpoints rotation keeps; 0: none
  Claims claims;
  std::map<std::string, std::string> variables;  // defaults, e.g. state = "8MiB"
  // "data" → "NAME=value": the environment variable with which it believes its data changed.
  std::map<std::string, std::string> changes;
  std::string launcher = "direct";  // or "torchrun", "mpirun", "srun": it starts the ranks
  std::vector<std::string> launcher_options;  // before its own, which win
  std::uint64_t start_ns = 0;  // may pass until a rank does more than say hello, where that is more
  bool fork_point = false;  // it calls savegate_hook.fork_point(): its ranks are forked from there
  bool events = true;       // false: a black box, which need not write any
  std::vector<std::string> needs_python;

  std::size_t shards_in(int world) const;  // files of a complete checkpoint, as far as is known
};

// A command without a subject.toml: nothing is known of its files (black box). "torchrun … train.py
// …" is its launcher, with its options, and the script.
Result<Subject> bare_subject(std::vector<std::string> command);

Result<Subject> load_subject(const std::string& toml_path);

// {name} → value, for each word; {{ is a plain brace. An unknown name is an error that names the
// nearest.
Result<std::vector<std::string>> expand_command(const std::vector<std::string>& command,
                                                const std::map<std::string, std::string>& values);

}  // namespace savegate::harness
