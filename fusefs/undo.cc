#include "fusefs/undo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fusefs/file_system.h"

namespace savegate::fusefs {

// Guarded by its mutex, which comes before Undo::mutex_.
struct Undo::File {
  File(faults::FileId of, int backing_fd) : id(of), fd(backing_fd) {}
  ~File() { ::close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const faults::FileId id;
  const int fd;
  std::mutex mutex;
  bool erased = false;                      // who waited for the mutex looks for another
  PastBytes unsynced;                       // as of the last fsync
  PastBytes losing;                         // without what is to be lost
  PastBytes past;                           // before each byte was last written
  std::vector<faults::FiredRecord> losses;  // one a rule
};

void Undo::Held::loses(faults::FiredRecord record) {
  const bool known = std::any_of(file_->losses.begin(), file_->losses.end(),
                                 [&](const auto& loss) { return loss.rule == record.rule; });
  if (!known) file_->losses.push_back(std::move(record));
}

void Undo::Held::synced() {
  file_->unsynced = {};
  file_->losing = {};
  file_->losses.clear();
  if (file_->past.empty()) undo_->erase(*file_);
}

int Undo::Held::drop() {
  if (const int error = file_->unsynced.restore(file_->fd)) return error;
  synced();
  return 0;
}

std::shared_ptr<Undo::File> Undo::find(faults::FileId file) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(file);
  return found == files_.end() ? nullptr : found->second;
}

std::shared_ptr<Undo::File> Undo::make(faults::FileId file, int path_fd, int& error) {
  const int fd = ::open(descriptor_path(path_fd).c_str(), O_RDWR | O_CLOEXEC);
  error = fd < 0 ? errno : 0;
  if (fd < 0) return nullptr;
  auto made = std::make_shared<File>(file, fd);
  const std::lock_guard lock(mutex_);
  auto [at, inserted] = files_.try_emplace(file, std::move(made));
  count_.store(files_.size(), std::memory_order_release);
  return at->second;
}

Undo::Held Undo::before(faults::FileId file, int path_fd, const std::optional<Change>& change,
                        Keeps keeps) {
  Held held;
  held.undo_ = this;
  do {
    if (held.lock_) held.lock_.unlock();
    held.file_ = find(file);
    if (!held.file_ && change && keeps.any()) held.file_ = make(file, path_fd, held.error_);
    if (!held.file_) return held;
    held.lock_ = std::unique_lock(held.file_->mutex);
  } while (held.file_->erased);
  if (!change) return held;
  File& of = *held.file_;
  int& error = held.error_;
  if (keeps.unsynced) error = of.unsynced.keep(of.fd, *change);
  if (error == 0 && keeps.past) error = of.past.replace(of.fd, *change);
  if (error == 0) {
    error = keeps.loses ? of.losing.keep(of.fd, *change) : of.losing.yield(of.fd, *change);
  }
  return held;
}

// Nothing is kept of the file any more. Under its mutex.
void Undo::erase(const File& file) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(file.id);
  if (found == files_.end() || found->second.get() != &file) return;
  found->second->erased = true;
  files_.erase(found);
  count_.store(files_.size(), std::memory_order_release);
}

bool Undo::has_past(faults::FileId file, std::uint64_t from, std::uint64_t to) {
  const auto found = find(file);
  if (!found) return false;
  const std::lock_guard lock(found->mutex);
  return found->past.overlaps(from, to);
}

void Undo::show_past(faults::FileId file, std::uint64_t from, char* bytes, std::uint64_t size) {
  const auto found = find(file);
  if (!found) return;
  const std::lock_guard lock(found->mutex);
  found->past.show(from, bytes, size);
}

void Undo::forget(faults::FileId file) {
  if (!any()) return;
  std::shared_ptr<File> gone;  // closed after the lock
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  gone = std::move(found->second);
  files_.erase(found);
  count_.store(files_.size(), std::memory_order_release);
}

void Undo::forget_all() {
  std::unordered_map<faults::FileId, std::shared_ptr<File>> gone;  // closed after the lock
  const std::lock_guard lock(mutex_);
  gone.swap(files_);
  count_.store(0, std::memory_order_release);
}

Result<void> Undo::lose(Recorder& recorder) {
  std::unordered_map<faults::FileId, std::shared_ptr<File>> files;
  {
    const std::lock_guard lock(mutex_);
    files.swap(files_);
  }
  std::unordered_map<std::string, std::uint64_t> hits;
  for (const auto& [id, file] : files) {
    const std::lock_guard lock(file->mutex);
    struct stat now {};
    if (::fstat(file->fd, &now) != 0) return fail(system_error("stat", "a file to be undone"));
    const PastBytes::Lost lost = file->losing.lost(static_cast<std::uint64_t>(now.st_size));
    if (lost.bytes == 0) continue;
    for (faults::FiredRecord& record : file->losses) {
      record.time_ns = monotonic_ns();
      record.hit = ++hits[record.rule];
      record.offset = lost.offset;
      record.requested = lost.bytes;
      recorder.fired(record);
    }
    if (const int error = file->losing.restore(file->fd)) {
      return fail(system_error("undo", file->losses.front().path, error));
    }
  }
  return {};
}

}  // namespace savegate::fusefs
