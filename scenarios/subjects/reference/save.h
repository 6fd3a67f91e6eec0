// The save: every rank's files, then the marker, then the pointer, each step agreed by all ranks.
//
//   begin → prepare → (copy →) write, settle → marker → pointer          (save)   → rotation
//
// Rank 0 makes the step directory empty, the old marker first. Each rank writes its files under
// temporary names, syncs, verifies and renames them. When all ranks have said that theirs are in
// place, rank 0 writes the marker; when that is agreed, the pointer. Whatever fails on one rank is
// returned by every rank, and the pointer still names the checkpoint before.
//
// Each virtual step is sound by itself; a negative control overrides one.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "gpu/staging_pool.h"
#include "scenarios/subjects/reference/file_writer.h"
#include "scenarios/subjects/reference/job.h"
#include "scenarios/subjects/reference/state.h"
#include "scenarios/subjects/reference/state_file.h"

namespace savegate::reference {

class Saver {
 public:
  explicit Saver(Job& job) : job_(job) {}
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  virtual ~Saver() = default;

  // Ready for the first save of a life. `pointer` is what the pointer file says now.
  void begin_life(const std::string& pointer) { pointer_ = pointer; }

  // The state is complete on disk and the pointer names it; or the same error on every rank.
  Result<void> save(const State& state);

  // Deletes what is neither new nor kept. The save before it stands whether this succeeds or not.
  Result<void> rotate();

 protected:
  virtual Result<void> protocol();

  virtual Result<void> begin();
  virtual Result<void> prepare_directory();  // rank 0
  virtual Result<void> take_copy();          // where saves write from one
  virtual Result<void> release_copy();       // and its memory goes back to the device
  // This rank's files, durable, verified and in place: write_files(), settle_files().
  virtual Result<std::vector<FileRecord>> store_files();
  virtual Result<void> write_files();      // under temporary names
  virtual Result<void> settle_files();     // durable, verified, in place
  virtual Result<void> publish_marker();   // rank 0
  virtual Result<void> publish_pointer();  // rank 0
  virtual void abandon();                  // after a failure

  virtual Result<void> write_shard();
  Result<void> write_state_file();
  virtual Result<void> write_tensor(FileWriter& writer, const gpu::Tensor& tensor);
  virtual StateFile state_file() const;

  // Every rank's payload, or the error that all ranks go by.
  virtual Result<std::vector<std::string>> agree(const Result<void>& own,
                                                 const std::string& payload = "");
  virtual Result<void> judge(const Votes& votes) { return first_error(votes); }

  // All ranks' records, for the marker.
  Result<void> gather_records(const Result<std::vector<FileRecord>>& own);
  std::vector<FileRecord> written_records() const;  // of this rank's files
  Result<void> write_pointer(const std::string& text);

  // Complete checkpoints but for the newest, rank 0.
  Result<void> delete_old(std::size_t keep_newest);
  virtual bool is_kept(std::int64_t step) const;  // outside of rotation

  bool is_first() const { return job_.rank == 0; }
  // That the files are written in.
  virtual std::string directory() const { return job_.path(step_name(step_)); }
  std::string path(const std::string& name) const { return directory() + "/" + name; }

  Job& job_;
  const State* state_ = nullptr;  // being saved
  State copy_;                    // of it, on its device
  std::int64_t step_ = 0;
  std::vector<FileWriter> writers_;  // this rank's files, until they are settled
  std::vector<FileRecord> records_;  // of all ranks
  std::string pointer_;              // what the pointer file says
  gpu::StagingPool staging_{job_.backend, gpu::Rounding::kExact};

 private:
  std::string marker_of(const std::string& name) const;  // of a step directory
  Result<void> delete_checkpoint(const std::string& name);
};

}  // namespace savegate::reference
