// All that the handlers of file operations share, one object a mount.
#pragma once

#define FUSE_USE_VERSION 314
#include <dirent.h>
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "faults/injector.h"
#include "faults/plan.h"
#include "fusefs/attribution.h"
#include "fusefs/flow.h"
#include "fusefs/inode_table.h"
#include "fusefs/open_files.h"
#include "fusefs/recorder.h"
#include "fusefs/stalls.h"
#include "fusefs/trimmer.h"
#include "fusefs/undo.h"
#include "fusefs/views.h"
#include "fusefs/worker_pool.h"

namespace savegate::fusefs {

// An open file. Alive from open to release, and as long as an operation on it is under way.
struct Handle : std::enable_shared_from_this<Handle> {
  Handle(NodePtr of, int backing_fd, OpenWay opened)
      : node(std::move(of)), fd(backing_fd), way(opened) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { ::close(fd); }

  const NodePtr node;
  const int fd;
  const OpenWay way;
};
using HandlePtr = std::shared_ptr<Handle>;

class FileSystem {
 public:
  // Takes the descriptor of the backing directory (O_PATH | O_DIRECTORY). At most `descriptors` may
  // be open in this process.
  FileSystem(const faults::Plan& plan, faults::Layout layout, int life, Recorder& record,
             int backing_fd, pid_t stop_at, std::size_t descriptors);
  ~FileSystem() { stalls.wake_all(); }
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  static FileSystem& of(fuse_req_t req) {
    return *static_cast<FileSystem*>(fuse_req_userdata(req));
  }
  static HandlePtr handle(const fuse_file_info* info);

  // For fuse_lowlevel_ops::init. Passthrough is asked for if it is to be and nothing is traced.
  void negotiate(fuse_conn_info* connection, bool passthrough);
  // Called by negotiate(), last. To be set before the mount is served.
  void set_negotiated(std::function<void()> negotiated) { negotiated_ = std::move(negotiated); }

  // What is open stays until the kernel releases it, or the mount ends without that.
  void keep(std::shared_ptr<void> opened);
  void drop(const void* opened);

  // Another plan, or an empty one. Refused where a rule could never act on this mount, and where a
  // file is open in such a way that the daemon does not see the operations of a rule on it; with
  // `defer` such rules act on later opens of these files, whose paths are returned.
  Result<std::vector<std::string>> arm(const faults::Plan& plan, bool defer);

  // Looks the name up for a reply to the kernel. 0 or errno.
  int entry(const NodePtr& parent, const std::string& name, fuse_entry_param& entry);
  // The same for an inode that the caller still sees under the name.
  void entry_of_past(const NodePtr& past, const NodePtr& parent, const std::string& name,
                     fuse_entry_param& entry);
  double attribute_timeout(Node& node);
  void reply_entry(fuse_req_t req, const fuse_entry_param& entry);
  // Makes the descriptor a handle of the kernel's, which decides how it caches. With an entry the
  // reply is one to create.
  void reply_open(fuse_req_t req, const NodePtr& node, int fd, fuse_file_info info,
                  const fuse_entry_param* entry);

  // The name of a backing file went away; its charge goes with its last name and handle.
  void name_removed(int path_fd);
  void released(faults::FileId file);  // its last name and handle
  void handle_closed(Handle& handle);

 private:
  const faults::Layout layout_;
  const int life_;
  const dev_t quiet_device_;  // of files whose backing has nothing to say at close; 0: none
  std::function<void()> negotiated_;
  std::mutex opened_mutex_;
  std::unordered_map<const void*, std::shared_ptr<void>> opened_;

 public:
  faults::Injector injector;
  InodeTable inodes;
  OpenFiles open_files;
  Attribution attribution;
  Recorder& recorder;
  const int root_fd;
  Views views;
  const std::shared_ptr<Undo> undo = std::make_shared<Undo>();  // ends after all operations have
  Flow flow;
  Trimmer trimmer;
  // Last, so that what still waits is finished while all else is there.
  WorkerPool pool;
  Stalls stalls;
  WorkerPool marks;  // who a mark is of can take until something that is held goes on

 private:
  void adopt_backing_files(const faults::Plan& plan);
  OpenFiles::Needs needs(fuse_req_t req, Node& node, int fd, const fuse_file_info& info);

  std::atomic<const char*> needs_all_{nullptr};  // why all reads and writes must be seen
  std::atomic<bool> names_lie_{false};           // the kernel must ask for each name again
};

Result<void> check_plan(const faults::Plan& plan);

// errno of a failed call as an outcome.
inline Outcome outcome_of(int result) { return {.error = result == 0 ? 0 : errno}; }
inline void reply_status(fuse_req_t req, const Outcome& outcome) {
  fuse_reply_err(req, outcome.error);
}
// What writing to a file does to its set-user-ID and set-group-ID bits; the daemon's own right to
// keep them is not the caller's.
class WriterRights {
 public:
  explicit WriterRights(fuse_req_t req) : privileged_(fuse_req_ctx(req)->uid == 0) {}
  // After a write that succeeded.
  void drop_setid(const Node& node) const;

 private:
  bool privileged_;
};
std::string descriptor_path(int fd);  // "/proc/self/fd/7"
// Opens as the caller's open(2) asks, less what the kernel has done or the mount does itself:
// offsets of O_APPEND are the kernel's, and O_DIRECT is refused where the backing refuses it but
// not used.
int open_backing(int folder_fd, const char* path, int flags, mode_t mode);

// Each fills in its group of operations.
void add_data_operations(fuse_lowlevel_ops& operations);
void add_name_operations(fuse_lowlevel_ops& operations);
void add_attribute_operations(fuse_lowlevel_ops& operations);
void add_directory_operations(fuse_lowlevel_ops& operations);

}  // namespace savegate::fusefs
