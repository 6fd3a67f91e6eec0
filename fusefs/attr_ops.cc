// Attributes of files and of the file system.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include "fusefs/file_system.h"
#include "fusefs/timestamps.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

void get_attributes(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto attributes = std::make_shared<struct stat>();
  fs.flow.run(
      Request{.req = req, .op = Op::kGetattr, .target = {.node = node}, .file = node->ino},
      [node, attributes](const Limits& limits) {
        const Outcome outcome = outcome_of(::fstat(node->fd, attributes.get()));
        if (limits.view) limits.view->attributes(*node, *attributes);
        if (limits.decision && limits.decision->timestamps) {
          apply(*limits.decision->timestamps, *attributes);
        }
        return outcome;
      },
      [&fs, node, attributes](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_attr(request, attributes.get(), fs.attribute_timeout(*node));
        }
      });
}

timespec time_to_set(int to_set, int now_bit, int value_bit, const timespec& value) {
  if ((to_set & now_bit) != 0) return {.tv_sec = 0, .tv_nsec = UTIME_NOW};
  if ((to_set & value_bit) != 0) return value;
  return {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
}

// 0 or errno. All that one request asks for; the kernel asks for one kind at a time.
int set_backing(const Node& node, const Handle* handle, const struct stat& wanted, int to_set) {
  if ((to_set & FUSE_SET_ATTR_MODE) != 0 &&
      ::chmod(descriptor_path(node.fd).c_str(), wanted.st_mode) != 0) {
    return errno;
  }
  if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) {
    const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? wanted.st_uid : static_cast<uid_t>(-1);
    const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? wanted.st_gid : static_cast<gid_t>(-1);
    if (::fchownat(node.fd, "", uid, gid, AT_EMPTY_PATH) != 0) return errno;
  }
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    const int result = handle ? ::ftruncate(handle->fd, wanted.st_size)
                              : ::truncate(descriptor_path(node.fd).c_str(), wanted.st_size);
    if (result != 0) return errno;
  }
  constexpr int kTimes =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if ((to_set & kTimes) != 0) {
    const std::array<timespec, 2> times = {
        time_to_set(to_set, FUSE_SET_ATTR_ATIME_NOW, FUSE_SET_ATTR_ATIME, wanted.st_atim),
        time_to_set(to_set, FUSE_SET_ATTR_MTIME_NOW, FUSE_SET_ATTR_MTIME, wanted.st_mtim)};
    if (::utimensat(node.fd, "", times.data(), AT_EMPTY_PATH) != 0) return errno;
  }
  return 0;
}

Op operation_of(int to_set) {
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) return Op::kTruncate;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) return Op::kChmod;
  if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) return Op::kChown;
  return Op::kUtimens;
}

void set_attributes(fuse_req_t req, fuse_ino_t ino, struct stat* wanted, int to_set,
                    fuse_file_info* info) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  HandlePtr handle = info ? FileSystem::handle(info) : nullptr;
  const Op op = operation_of(to_set);
  fs.flow.run(
      Request{.req = req,
              .op = op,
              .target = {.node = node},
              .file = node->ino,
              .offset = op == Op::kTruncate ? static_cast<std::uint64_t>(wanted->st_size) : 0},
      [&fs, node, handle, wish = *wanted, to_set,
       rights = WriterRights(req)](const Limits&) -> Outcome {
        const int error = set_backing(*node, handle.get(), wish, to_set);
        if (error == 0 && (to_set & FUSE_SET_ATTR_SIZE) != 0) {
          fs.injector.truncated(node->ino, static_cast<std::uint64_t>(wish.st_size));
          rights.drop_setid(*node);
        }
        return {.error = error};
      },
      [&fs, node](fuse_req_t request, const Outcome& outcome) {
        struct stat now {};
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else if (::fstat(node->fd, &now) != 0) {
          fuse_reply_err(request, errno);
        } else {
          fuse_reply_attr(request, &now, fs.attribute_timeout(*node));
        }
      });
}

void read_link(fuse_req_t req, fuse_ino_t ino) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto text = std::make_shared<std::string>();
  fs.flow.run(
      Request{.req = req, .op = Op::kReadlink, .target = {.node = node}, .file = node->ino},
      [node, text](const Limits&) -> Outcome {
        text->resize(PATH_MAX);
        const ssize_t length = ::readlinkat(node->fd, "", text->data(), text->size());
        if (length < 0) return {.error = errno};
        text->resize(static_cast<std::size_t>(length));
        return {};
      },
      [text](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_readlink(request, text->c_str());
        }
      });
}

// A budget makes the file system look as large as the budget.
void apply_space(const faults::Space& space, struct statvfs& status) {
  const auto unit = status.f_frsize;
  status.f_blocks = std::min<fsblkcnt_t>(status.f_blocks, space.limit / unit);
  status.f_bfree = std::min<fsblkcnt_t>(status.f_bfree, space.free / unit);
  status.f_bavail = std::min<fsblkcnt_t>(status.f_bavail, space.free / unit);
  if (!space.inodes) return;
  status.f_files = std::min<fsfilcnt_t>(status.f_files, space.inodes->limit);
  status.f_ffree = std::min<fsfilcnt_t>(status.f_ffree, space.inodes->free);
  status.f_favail = std::min<fsfilcnt_t>(status.f_favail, space.inodes->free);
}

void get_file_system(fuse_req_t req, fuse_ino_t ino) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto status = std::make_shared<struct statvfs>();
  fs.flow.run(
      Request{.req = req, .op = Op::kStatfs, .target = {.node = node}, .file = node->ino},
      [&fs, node, status](const Limits&) -> Outcome {
        if (::fstatvfs(fs.root_fd, status.get()) != 0) return {.error = errno};
        if (auto space = fs.injector.space(fs.inodes.path(*node))) apply_space(*space, *status);
        return {};
      },
      [status](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_statfs(request, status.get());
        }
      });
}

// getxattr and listxattr: `read(buffer, size)` as the system calls, size 0 asking for the length.
template <class Read>
void read_xattr(fuse_req_t req, Op op, fuse_ino_t ino, const char* name, std::size_t size,
                Read read) {
  struct Value {
    std::vector<char> bytes;
    std::size_t length = 0;
  };
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto value = std::make_shared<Value>();
  fs.flow.run(
      Request{.req = req, .op = op, .target = {.node = node, .text2 = name}, .file = node->ino},
      [node, value, size, read](const Limits&) -> Outcome {
        value->bytes.resize(size);
        const ssize_t got = read(descriptor_path(node->fd).c_str(), value->bytes.data(), size);
        if (got < 0) return {.error = errno};
        value->length = static_cast<std::size_t>(got);
        return {};
      },
      [value, size](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else if (size == 0) {
          fuse_reply_xattr(request, value->length);
        } else {
          fuse_reply_buf(request, value->bytes.data(), value->length);
        }
      });
}

void get_xattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  read_xattr(req, Op::kGetxattr, ino, name, size,
             [key = std::string(name)](const char* path, char* value, std::size_t room) {
               return ::getxattr(path, key.c_str(), value, room);
             });
}

void list_xattrs(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  read_xattr(
      req, Op::kListxattr, ino, nullptr, size,
      [](const char* path, char* list, std::size_t room) { return ::listxattr(path, list, room); });
}

void set_xattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value,
               std::size_t size, int flags) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  fs.flow.run(
      Request{.req = req,
              .op = Op::kSetxattr,
              .target = {.node = node, .text2 = name},
              .file = node->ino,
              .length = size,
              .payload = {value, size}},
      [node, key = std::string(name), flags](const Limits& limits) {
        return outcome_of(::setxattr(descriptor_path(node->fd).c_str(), key.c_str(),
                                     limits.payload.data(), limits.payload.size(), flags));
      },
      reply_status);
}

void remove_xattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  fs.flow.run(
      Request{.req = req,
              .op = Op::kRemovexattr,
              .target = {.node = node, .text2 = name},
              .file = node->ino},
      [node, key = std::string(name)](const Limits&) {
        return outcome_of(::removexattr(descriptor_path(node->fd).c_str(), key.c_str()));
      },
      reply_status);
}

}  // namespace

void add_attribute_operations(fuse_lowlevel_ops& operations) {
  operations.getattr = get_attributes;
  operations.setattr = set_attributes;
  operations.readlink = read_link;
  operations.statfs = get_file_system;
  operations.getxattr = get_xattr;
  operations.listxattr = list_xattrs;
  operations.setxattr = set_xattr;
  operations.removexattr = remove_xattr;
}

}  // namespace savegate::fusefs
