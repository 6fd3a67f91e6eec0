// One FUSE session: mounted, served by a fixed number of threads, unmounted.
//
// The threads are few because none of them ever waits for a rule: stalled requests are parked. They
// end when the mount is gone or at stop(); what is parked may still be replied to until the session
// is destroyed, which closes the connection.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "faults/status.h"

namespace savegate::fusefs {

class Session {
 public:
  // As root by mount(2), else through fusermount3.
  static Result<std::unique_ptr<Session>> mount(const fuse_lowlevel_ops& operations, void* userdata,
                                                const std::string& mount_point,
                                                const std::string& source);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `ended` is called by the last thread to end, also when the mount was taken away from outside.
  void start(unsigned threads, std::function<void()> ended);
  // Unmounts and ends the threads.
  Result<void> stop();

  fuse_session* get() const { return session_; }

 private:
  Session(fuse_session* session, std::string mount_point, bool by_helper);
  void serve();

  fuse_session* const session_;
  const std::string mount_point_;
  const bool by_helper_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t serving_ = 0;
  std::function<void()> ended_;
  std::vector<std::thread> threads_;
};

// For fuse_lowlevel_ops::init: what this file system asks of the kernel, passthrough as in wire.h.
void negotiate(fuse_conn_info* connection, unsigned passthrough_depth);

}  // namespace savegate::fusefs
