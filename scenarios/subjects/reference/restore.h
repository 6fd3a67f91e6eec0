// The restore: find the checkpoint that the pointer names, check all of it, load it, each step
// agreed by all ranks. Nothing is taken for granted and nothing is made up: what is missing, of
// another size, digest, name, shape or run contract refuses the load on every rank with the same
// error.
//
// Each virtual step is sound by itself; a negative control overrides one.
#pragma once

#include <optional>
#include <string>

#include "faults/status.h"
#include "scenarios/subjects/reference/job.h"
#include "scenarios/subjects/reference/shard_reader.h"
#include "scenarios/subjects/reference/state.h"
#include "scenarios/subjects/reference/state_file.h"

namespace savegate::reference {

class Restorer {
 public:
  explicit Restorer(Job& job) : job_(job) {}
  Restorer(const Restorer&) = delete;
  Restorer& operator=(const Restorer&) = delete;
  virtual ~Restorer() = default;

  // The step that was restored into `state`; nothing where the pointer says that no save was ever
  // complete, and then `state` is that of a fresh start.
  virtual Result<std::optional<std::int64_t>> restore(State& state);

  // What the pointer said: a step directory's name, or "none"; "" if it could not be read.
  const std::string& resolved() const { return name_; }
  std::string resolved_path() const;

 protected:
  virtual Result<std::string> resolve();
  virtual Result<void> check(
      const State& state);  // marker, contract and own files, not their bytes
  virtual Result<Marker> read_marker();
  virtual Result<void> check_run(const Marker& marker);
  virtual Result<void> check_names(const TensorHeader& header, const State& state);
  virtual Result<void> compare(const FileRecord& listed, const FileRecord& found);
  virtual Result<void> load(State& state);
  virtual Result<void> give_cache_back();  // what the load has used of the device
  virtual int state_file_rank() const { return job_.rank; }
  virtual Result<void> adopt(State& state, const StateFile& file);

  virtual Result<void> agree(const Result<void>& own);

  Status refusal(const std::string& name, const std::string& text) const;
  Result<void> load_shard(State& state);
  Result<void> load_state_file(State& state);

  Job& job_;

 private:
  Result<void> find(const State& state);
  Result<void> load_through_copy(State& state);
  Result<void> check_file(const std::string& name);
  Result<FileRecord> listed(const std::string& name) const;
  std::string path(const std::string& name) const { return resolved_path() + "/" + name; }

  std::string name_;
  Marker marker_;
};

}  // namespace savegate::reference
