#include "fusefs/trimmer.h"

namespace savegate::fusefs {

Trimmer::~Trimmer() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Trimmer::start(fuse_session* session) {
  session_ = session;
  thread_ = std::thread([this] { run(); });
}

void Trimmer::wake() {
  {
    std::lock_guard lock(mutex_);
    if (wanted_) return;
    wanted_ = true;
  }
  changed_.notify_all();
}

void Trimmer::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || wanted_; });
    if (ending_) return;
    lock.unlock();
    trim();
    lock.lock();
    wanted_ = false;
  }
}

void Trimmer::trim() {
  const std::size_t known = inodes_.size();
  if (known <= most_ / 2) return;
  for (const auto& [parent, name] : inodes_.unopened(known - most_ / 2)) {
    // A name that is in use, or gone by now, stays as it is.
    fuse_lowlevel_notify_inval_entry(session_, inodes_.id(*parent), name.c_str(), name.size());
  }
}

}  // namespace savegate::fusefs
