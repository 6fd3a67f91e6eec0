// Undo: what must come undone later, file by file.
//
// Three faults need what a file held before: an fsync that fails and drops what was not synced, a
// write that is lost at the end of the mount, and a reader who is shown what was overwritten. The
// backing file always has what this mount shows; the old bytes are kept here, in memory, from the
// change to the fsync, to the end of the mount, or as long as the file lives. A daemon that is
// killed by SIGKILL therefore undoes nothing.
//
// before() locks the file until the Held is gone: keeping the old bytes and changing the file are
// one step. Thread-safe; `mutex_` is held for no system call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "faults/fired.h"
#include "faults/operation.h"
#include "fusefs/past_bytes.h"
#include "fusefs/recorder.h"

namespace savegate::fusefs {

class Undo {
  struct File;

 public:
  // What the rules ask to be kept of a file.
  struct Keeps {
    bool unsynced = false;
    bool past = false;
    bool loses = false;  // this very change
    bool any() const { return unsynced || past || loses; }
  };

  // A file about to be changed or synced.
  class Held {
   public:
    Held() = default;
    explicit operator bool() const { return file_ != nullptr; }
    int error() const { return error_; }  // errno; the old bytes could not be kept
    // The change was made; at the end of the mount it will be lost, which `record` is to prove.
    void loses(faults::FiredRecord record);
    void synced();
    // What was not synced is gone. 0 or errno.
    int drop();

   private:
    friend class Undo;
    Undo* undo_ = nullptr;
    std::shared_ptr<File> file_;
    std::unique_lock<std::mutex> lock_;
    int error_ = 0;
  };
  // Empty where nothing is or will be kept of the file. `change`: none for an fsync.
  Held before(faults::FileId file, int path_fd, const std::optional<Change>& change, Keeps keeps);

  // Whether anything is kept of any file, so that most look no further.
  bool any() const { return count_.load(std::memory_order_acquire) != 0; }
  bool keeps(faults::FileId file) const { return any() && find(file) != nullptr; }
  bool has_past(faults::FileId file, std::uint64_t from, std::uint64_t to);
  void show_past(faults::FileId file, std::uint64_t from, char* bytes, std::uint64_t size);

  void forget(faults::FileId file);  // its last name and handle are gone
  void forget_all();                 // another plan is armed
  // Ends the mount: what is to be lost is lost, each with its fired record.
  Result<void> lose(Recorder& recorder);

 private:
  std::shared_ptr<File> find(faults::FileId file) const;
  std::shared_ptr<File> make(faults::FileId file, int path_fd, int& error);
  void erase(const File& file);

  std::atomic<std::size_t> count_{0};  // files_.size()
  mutable std::mutex mutex_;
  std::unordered_map<faults::FileId, std::shared_ptr<File>> files_;
};

}  // namespace savegate::fusefs
