#include "fusefs/file_system.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <variant>

#include "fusefs/wire.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

constexpr double kCacheSeconds = 1.0;  // names and attributes in the kernel, where no rule minds
constexpr unsigned kPoolThreads = 4;

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

bool kills_jobs(const faults::Plan& plan) {
  return std::any_of(plan.rules.begin(), plan.rules.end(), [](const faults::Rule& rule) {
    const auto* kill = std::get_if<faults::KillAction>(&rule.action);
    return kill != nullptr && kill->target == faults::KillTarget::kJob;
  });
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
    : injector(plan, std::move(layout), life),
      attribution(stop_at),
      recorder(record),
      root_fd(backing_fd),
      flow(injector, inodes, attribution, recorder, stalls, views, backing_fd),
      trimmer(inodes, descriptors / 2),
      pool(kPoolThreads),
      stalls(pool) {
  adopt_backing_files(plan);
  names_lie_ = lies_about_names(plan);
  if (forbids_mmap(plan)) wire::forbid_direct_mmap();
  views.arm(plan);
  flow.see_all_callers(kills_jobs(plan));
  flow.set_armed(!plan.rules.empty() || !plan.budgets.empty());
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

Result<void> FileSystem::arm(const faults::Plan& plan) {
  SAVEGATE_CHECK(check_plan(plan));
  if (forbids_mmap(plan) && wire::direct_mmap()) {
    return fail(invalid(
        "a mount does not lose mmap while it is in use: start it with the plan that says so"));
  }
  const bool armed = !plan.rules.empty() || !plan.budgets.empty();
  names_lie_ = lies_about_names(plan);
  flow.see_all_callers(kills_jobs(plan));
  injector.arm(plan);
  views.arm(plan);
  adopt_backing_files(plan);
  flow.set_armed(armed);
  return {};
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
    if (::lstat(at->path().c_str(), &attributes) != 0 || !S_ISREG(attributes.st_mode)) continue;
    injector.adopt(attributes.st_ino, at->path().lexically_relative(top).string(),
                   static_cast<std::uint64_t>(attributes.st_size));
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

void FileSystem::reply_open(fuse_req_t req, const NodePtr& node, int fd, fuse_file_info info,
                            const fuse_entry_param* entry) {
  const bool writable = (info.flags & O_ACCMODE) != O_RDONLY;
  // Direct writes are exact and faster; without shared mmap on them only where they must be. A
  // trace shows reads as they were asked, so that a rule made from it meets the same operations
  // again.
  bool direct = wire::direct_mmap() ? writable || flow.tracing() : writable && flow.tracing();
  direct |= info.direct_io != 0;
  if (flow.armed()) {
    auto rules = flow.rules_of(*node);
    if (rules) direct |= rules->needs_direct_reads() || (writable && rules->needs_direct_writes());
  }
  auto handle = std::make_shared<Handle>(node, fd);
  keep(handle);
  node->handles++;
  info.fh = std::bit_cast<std::uint64_t>(handle.get());
  info.direct_io = direct ? 1 : 0;
  const wire::ScopedOpenFlags flags(direct ? wire::kParallelDirectWrites : 0);
  const int failed = entry ? fuse_reply_create(req, entry, &info) : fuse_reply_open(req, &info);
  if (failed == 0) return;
  // The caller is gone: nobody will release it.
  drop(handle.get());
  node->handles--;
  handle_closed(*node);
  if (entry) inodes.forget(entry->ino, 1);
}

void FileSystem::name_removed(int path_fd) {
  struct stat attributes {};
  if (::fstat(path_fd, &attributes) != 0 || attributes.st_nlink != 0) return;
  auto node = inodes.find(attributes.st_dev, attributes.st_ino);
  injector.unlinked(attributes.st_ino);
  if (node) node->unlinked = true;
  if (!node || node->handles == 0) injector.released(attributes.st_ino);
}

void FileSystem::handle_closed(const Node& node) {
  if (node.handles == 0 && node.unlinked) injector.released(node.ino);
}

}  // namespace savegate::fusefs
