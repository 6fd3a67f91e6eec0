#include "fusefs/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <variant>

#include "fusefs/session.h"
#include "fusefs/wire.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

constexpr double kCacheSeconds = 1.0;  // names and attributes in the kernel, where no rule minds
constexpr unsigned kPoolThreads = 4;
constexpr unsigned kMarkThreads = 8;

// Kept by the kernel, so that they never reach the daemon.
constexpr std::array<Op, 2> kUnseen = {Op::kLock, Op::kAccess};

// After such a success the kernel believes in names that are not so.
bool lies_about_names(const faults::Plan& plan) {
  const auto names = op_bit(Op::kRename) | op_bit(Op::kUnlink) | op_bit(Op::kRmdir);
  return std::any_of(plan.rules.begin(), plan.rules.end(), [names](const faults::Rule& rule) {
    return std::holds_alternative<faults::LieAction>(rule.action) &&
           (rule.match.ops == 0 || (rule.match.ops & names) != 0);
  });
}

// A connection that lets handles with direct I/O be mapped does so for all files.
bool forbids_mmap(const faults::Plan& plan) {
  return std::any_of(plan.rules.begin(), plan.rules.end(), [](const faults::Rule& rule) {
    const auto* missing = std::get_if<faults::MissingAction>(&rule.action);
    return missing != nullptr && missing->features.has(faults::Feature::kMmap);
  });
}

// A rule that reaches ranks which no rule of their own matches.
bool reaches_jobs(const faults::Plan& plan) {
  return std::any_of(plan.rules.begin(), plan.rules.end(), [](const faults::Rule& rule) {
    const auto* kill = std::get_if<faults::KillAction>(&rule.action);
    const auto* freeze = std::get_if<faults::FreezeAction>(&rule.action);
    return (kill != nullptr && kill->target == faults::KillTarget::kJob) ||
           (freeze != nullptr && freeze->target == faults::KillTarget::kJob);
  });
}

// The device of the directory if its file system does nothing at close(2): network file systems
// write back there, and say what went wrong.
dev_t device_quiet_at_close(int fd) {
  constexpr std::array<long, 4> kQuiet = {TMPFS_MAGIC, EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                          XFS_SUPER_MAGIC};
  struct statfs system {};
  struct stat folder {};
  if (::fstatfs(fd, &system) != 0 || ::fstat(fd, &folder) != 0) return 0;
  return std::find(kQuiet.begin(), kQuiet.end(), system.f_type) != kQuiet.end() ? folder.st_dev : 0;
}

bool has_setid(int fd) {
  struct stat now {};
  return ::fstat(fd, &now) == 0 && (now.st_mode & (S_ISUID | S_ISGID)) != 0;
}

// Why the daemon must see all reads and writes of all files, null where it need not.
const char* needs_all(const faults::Plan& plan) {
  if (reaches_jobs(plan)) return "a rule reaches the whole job, which every caller belongs to";
  if (forbids_mmap(plan)) return "a rule takes shared mappings away";
  const bool stale = std::any_of(plan.rules.begin(), plan.rules.end(), [](const auto& rule) {
    return std::holds_alternative<faults::StaleAction>(rule.action);
  });
  return stale ? "a rule shows stale views, and so what each write changes" : nullptr;
}

}  // namespace

std::string descriptor_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

void WriterRights::drop_setid(const Node& node) const {
  struct stat now {};
  if (privileged_ || ::fstat(node.fd, &now) != 0 || !S_ISREG(now.st_mode)) return;
  mode_t dropped = now.st_mode & S_ISUID;
  if ((now.st_mode & S_IXGRP) != 0) dropped |= now.st_mode & S_ISGID;
  if (dropped != 0) ::chmod(descriptor_path(node.fd).c_str(), now.st_mode & 07777 & ~dropped);
}

int open_backing(int folder_fd, const char* path, int flags, mode_t mode) {
  const int fd = ::openat(folder_fd, path, (flags & ~O_APPEND) | O_CLOEXEC, mode);
  if (fd >= 0 && (flags & O_DIRECT) != 0) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_DIRECT);
  }
  return fd;
}

FileSystem::FileSystem(const faults::Plan& plan, faults::Layout layout, int life, Recorder& record,
                       int backing_fd, pid_t stop_at, std::size_t descriptors)
    : layout_(layout),
      life_(life),
      quiet_device_(device_quiet_at_close(backing_fd)),
      injector(plan, std::move(layout), life),
      attribution(stop_at),
      recorder(record),
      root_fd(backing_fd),
      flow(injector, inodes, attribution, recorder, stalls, views, *undo, backing_fd),
      trimmer(inodes, descriptors / 2),
      pool(kPoolThreads),
      stalls(pool),
      marks(kMarkThreads) {
  adopt_backing_files(plan);
  names_lie_ = lies_about_names(plan);
  needs_all_ = needs_all(plan);
  if (forbids_mmap(plan)) wire::forbid_direct_mmap();
  views.arm(plan);
  flow.see_all_callers(reaches_jobs(plan));
  flow.set_armed(!plan.rules.empty() || !plan.budgets.empty());
}

void FileSystem::negotiate(fuse_conn_info* connection, bool passthrough) {
  struct statfs system {};
  const bool overlay = ::fstatfs(root_fd, &system) == 0 && system.f_type == OVERLAYFS_SUPER_MAGIC;
  const unsigned depth = overlay ? 2 : 1;
  const bool asked = passthrough && !flow.tracing();
  fusefs::negotiate(connection, asked ? depth : 0);
  if (asked) {
    open_files.allow_passthrough(wire::passthrough() ? "" : "the kernel does not offer it");
  } else {
    open_files.allow_passthrough(passthrough ? "operations are traced" : "it was not asked for");
  }
  negotiated_();
}

HandlePtr FileSystem::handle(const fuse_file_info* info) {
  return std::bit_cast<Handle*>(info->fh)->shared_from_this();
}

void FileSystem::keep(std::shared_ptr<void> opened) {
  const void* key = opened.get();
  const std::lock_guard lock(opened_mutex_);
  opened_.emplace(key, std::move(opened));
}

void FileSystem::drop(const void* opened) {
  std::shared_ptr<void> last;  // closed after the lock
  const std::lock_guard lock(opened_mutex_);
  auto found = opened_.find(opened);
  if (found == opened_.end()) return;
  last = std::move(found->second);
  opened_.erase(found);
}

Result<void> check_plan(const faults::Plan& plan) {
  std::uint64_t unseen = 0;
  for (Op op : kUnseen) unseen |= op_bit(op);
  for (const auto& rule : plan.rules) {
    const auto ops = rule.match.ops;
    if (ops != 0 && (ops & ~unseen) == 0) {
      return fail(
          invalid(fmt::format("rule \"{}\" can never act: the kernel answers lock and "
                              "access on this mount itself",
                              rule.name)));
    }
    if (ops == 0 || !std::holds_alternative<faults::LieAction>(rule.action)) continue;
    for (int i = 0; i < faults::kOpCount; i++) {
      const Op op = static_cast<Op>(i);
      if ((ops & op_bit(op)) != 0 && !can_lie(op)) {
        return fail(
            invalid(fmt::format("rule \"{}\": {} cannot succeed without being done, so "
                                "`lie` does not apply to it",
                                rule.name, op_name(op))));
      }
    }
  }
  return {};
}

Result<std::vector<std::string>> FileSystem::arm(const faults::Plan& plan, bool defer) {
  SAVEGATE_CHECK(check_plan(plan));
  if (forbids_mmap(plan) && wire::direct_mmap()) {
    return fail(invalid(
        "a mount does not lose mmap while it is in use: start it with the plan that says so"));
  }
  const faults::Injector coming(plan, layout_, life_);
  const auto needed = [&](const std::string& path) {
    if (needs_all(plan) != nullptr) return ~std::uint64_t{0};
    auto rules = coming.rules_for(path);
    std::uint64_t ops = 0;
    for (Op op : {Op::kRead, Op::kWrite, Op::kClose}) {
      if (rules && rules->can_match(op)) ops |= op_bit(op);
    }
    return ops;
  };
  const auto blind = open_files.arm(inodes, needed, defer, [&] {
    const bool armed = !plan.rules.empty() || !plan.budgets.empty();
    names_lie_ = lies_about_names(plan);
    flow.see_all_callers(reaches_jobs(plan));
    needs_all_ = needs_all(plan);
    injector.arm(plan);
    views.arm(plan);
    undo->forget_all();
    adopt_backing_files(plan);
    flow.set_armed(armed);
  });
  if (blind.empty() || defer) return blind;
  return fail(invalid(fmt::format(
      "the kernel keeps operations of a rule to itself on what is open already: {}; close {}, or "
      "arm with --defer for later opens",
      fmt::join(blind, ", "), blind.size() == 1 ? "it" : "them")));
}

void FileSystem::adopt_backing_files(const faults::Plan& plan) {
  if (plan.budgets.empty()) return;
  namespace fs = std::filesystem;
  const fs::path top = descriptor_path(root_fd) + "/.";
  std::error_code error;
  for (fs::recursive_directory_iterator
           at(top, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error)) {
    struct stat attributes {};
    if (::lstat(at->path().c_str(), &attributes) != 0) continue;
    const auto bytes = S_ISREG(attributes.st_mode) ? attributes.st_size : 0;
    injector.adopt(attributes.st_ino, at->path().lexically_relative(top).string(),
                   static_cast<std::uint64_t>(bytes));
  }
}

double FileSystem::attribute_timeout(Node& node) {
  if (!flow.armed()) return kCacheSeconds;
  auto rules = flow.rules_of(node);
  return rules && rules->can_match(Op::kGetattr) ? 0.0 : kCacheSeconds;
}

int FileSystem::entry(const NodePtr& parent, const std::string& name, fuse_entry_param& entry) {
  NodePtr node;
  entry = {};
  if (int error = inodes.lookup(parent, name, node, entry.attr)) return error;
  trimmer.check();
  entry.ino = inodes.id(*node);
  entry.attr_timeout = attribute_timeout(*node);
  entry.entry_timeout = names_lie_ ? 0.0 : kCacheSeconds;
  if (flow.armed()) {
    auto rules = flow.rules_of(*node);
    if (rules && rules->can_match(Op::kLookup)) entry.entry_timeout = 0.0;
  }
  return 0;
}

void FileSystem::entry_of_past(const NodePtr& past, const NodePtr& parent, const std::string& name,
                               fuse_entry_param& entry) {
  entry = {};
  const NodePtr node = inodes.adopt(past, parent, name);
  ::fstat(node->fd, &entry.attr);
  entry.attr.st_nlink = std::max<nlink_t>(entry.attr.st_nlink, 1);  // it seems to have its name
  entry.ino = inodes.id(*node);
}

void FileSystem::reply_entry(fuse_req_t req, const fuse_entry_param& entry) {
  if (fuse_reply_entry(req, &entry) != 0) inodes.forget(entry.ino, 1);
}

// What the handle must let the daemon see, asked while no plan can be armed.
OpenFiles::Needs FileSystem::needs(fuse_req_t req, Node& node, int fd, const fuse_file_info& info) {
  const bool writable = (info.flags & O_ACCMODE) != O_RDONLY;
  const bool without_mmap = info.direct_io != 0;
  OpenFiles::Needs needs;
  const auto rules = flow.armed() ? flow.rules_of(node) : nullptr;
  if (flow.tracing()) {
    needs.data = "operations are traced";
  } else if (const char* all = needs_all_) {
    needs.data = all;
  } else if (rules && rules->needs_direct_reads()) {
    needs.data = "a rule can act on its reads";
  } else if (rules && writable && rules->needs_direct_writes()) {
    needs.data = "a rule or budget can act on its writes";
  } else if (writable && undo->keeps(node.ino)) {
    needs.data = "what was written to it may come undone";
  } else if (writable && fuse_req_ctx(req)->uid != 0 && has_setid(fd)) {
    needs.data = "a write must take its set-user-ID bits away";
  }
  // Direct writes are exact and faster; without shared mmap on them only where they must be. A
  // trace shows reads as they were asked, so that a rule made from it meets the same operations
  // again.
  needs.direct = without_mmap;
  needs.direct |= wire::direct_mmap() ? writable || flow.tracing() : writable && flow.tracing();
  if (rules) {
    needs.direct |= rules->needs_direct_reads() || (writable && rules->needs_direct_writes());
  }
  needs.close = flow.tracing() || needs_all_ != nullptr || node.dev != quiet_device_ ||
                (rules && rules->can_match(Op::kClose));
  return needs;
}

void FileSystem::reply_open(fuse_req_t req, const NodePtr& node, int fd, fuse_file_info info,
                            const fuse_entry_param* entry) {
  const bool writable = (info.flags & O_ACCMODE) != O_RDONLY;
  const OpenWay way =
      open_files.open(node, fd, writable, [&] { return needs(req, *node, fd, info); });
  auto handle = std::make_shared<Handle>(node, fd, way);
  keep(handle);
  node->handles++;
  info.fh = std::bit_cast<std::uint64_t>(handle.get());
  info.direct_io = way.direct ? 1 : 0;
  info.noflush = way.sends_close ? 0 : 1;
  const wire::OpenFlags flags{.parallel_direct_writes = way.direct, .backing_id = way.backing_id};
  if (wire::reply_open(req, entry, info, flags) == 0) return;
  // The caller is gone: nobody will release it.
  handle_closed(*handle);
  if (entry) inodes.forget(entry->ino, 1);
}

void FileSystem::name_removed(int path_fd) {
  struct stat attributes {};
  if (::fstat(path_fd, &attributes) != 0 || attributes.st_nlink != 0) return;
  auto node = inodes.find(attributes.st_dev, attributes.st_ino);
  injector.unlinked(attributes.st_ino);
  if (node) node->unlinked = true;
  if (!node || node->handles == 0) released(attributes.st_ino);
}

void FileSystem::released(faults::FileId file) {
  injector.released(file);
  undo->forget(file);
}

void FileSystem::handle_closed(Handle& handle) {
  const NodePtr node = handle.node;
  open_files.close(*node, handle.way);
  drop(&handle);
  node->handles--;
  if (node->handles == 0 && node->unlinked) released(node->ino);
}

}  // namespace savegate::fusefs
