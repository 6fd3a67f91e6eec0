// What makes, moves and removes names.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "fusefs/file_system.h"
#include "fusefs/named.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

// The caller as owner of what is made on its behalf.
struct Owner {
  explicit Owner(fuse_req_t req) : uid(fuse_req_ctx(req)->uid), gid(fuse_req_ctx(req)->gid) {}

  // A daemon that is not root makes all files its own. 0 or errno.
  int take(const Node& parent, const char* name) const {
    if (::geteuid() != 0 || (uid == 0 && gid == 0)) return 0;
    struct stat folder {};
    if (::fstat(parent.fd, &folder) != 0) return errno;
    const gid_t group = (folder.st_mode & S_ISGID) != 0 ? static_cast<gid_t>(-1) : gid;
    struct stat made {};
    if (::fstatat(parent.fd, name, &made, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fchownat(parent.fd, name, uid, group, AT_SYMLINK_NOFOLLOW) != 0) {
      return errno;
    }
    // A change of owner drops these bits; what was made with them keeps them.
    if (S_ISLNK(made.st_mode) || (made.st_mode & (S_ISUID | S_ISGID)) == 0) return 0;
    return ::fchmodat(parent.fd, name, made.st_mode & 07777, 0) == 0 ? 0 : errno;
  }

  uid_t uid;
  gid_t gid;
};

// Runs `make`, which creates parent/name and returns 0 or -1 with errno, and replies with the
// entry.
template <class Make>
void make_entry(fuse_req_t req, Op op, const Target& target, Make make) {
  auto& fs = FileSystem::of(req);
  auto entry = std::make_shared<fuse_entry_param>();
  fs.flow.run(
      Request{.req = req, .op = op, .target = target},
      [&fs, parent = target.node, name = std::string(target.name), entry, make,
       owner = Owner(req)](const Limits&) -> Outcome {
        if (make(*parent, name.c_str()) != 0) return {.error = errno};
        if (int error = owner.take(*parent, name.c_str())) return {.error = error};
        const int error = fs.entry(parent, name, *entry);
        return {.error = error, .made = error == 0 ? entry->attr.st_ino : 0};
      },
      [&fs, entry](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fs.reply_entry(request, *entry);
        }
      });
}

void make_node(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode, dev_t device) {
  make_entry(req, Op::kMknod, {.node = FileSystem::of(req).inodes.get(parent), .name = name},
             [mode, device](const Node& folder, const char* made) {
               return ::mknodat(folder.fd, made, mode, device);
             });
}

void make_directory(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  make_entry(
      req, Op::kMkdir, {.node = FileSystem::of(req).inodes.get(parent), .name = name},
      [mode](const Node& folder, const char* made) { return ::mkdirat(folder.fd, made, mode); });
}

void make_symlink(fuse_req_t req, const char* text, fuse_ino_t parent, const char* name) {
  make_entry(req, Op::kSymlink,
             {.node = FileSystem::of(req).inodes.get(parent), .name = name, .text2 = text},
             [target = std::string(text)](const Node& folder, const char* made) {
               return ::symlinkat(target.c_str(), folder.fd, made);
             });
}

void make_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char* new_name) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto parent = fs.inodes.get(new_parent);
  auto entry = std::make_shared<fuse_entry_param>();
  fs.flow.run(
      Request{.req = req,
              .op = Op::kLink,
              .target = {.node = node, .node2 = parent, .name2 = new_name},
              .file = node->ino},
      [&fs, node, parent, name = std::string(new_name), entry](const Limits&) -> Outcome {
        if (::linkat(AT_FDCWD, descriptor_path(node->fd).c_str(), parent->fd, name.c_str(),
                     AT_SYMLINK_FOLLOW) != 0) {
          return {.error = errno};
        }
        return {.error = fs.entry(parent, name, *entry)};
      },
      [&fs, entry](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fs.reply_entry(request, *entry);
        }
      });
}

void create_file(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
                 fuse_file_info* info) {
  struct Created {
    int fd = -1;
    fuse_entry_param entry{};
  };
  auto& fs = FileSystem::of(req);
  auto folder = fs.inodes.get(parent);
  auto created = std::make_shared<Created>();
  fs.flow.run(
      Request{.req = req,
              .op = Op::kCreate,
              .target = {.node = folder, .name = name},
              .flags = static_cast<std::uint32_t>(info->flags)},
      [&fs, folder, text = std::string(name), mode, created, flags = info->flags,
       owner = Owner(req)](const Limits&) -> Outcome {
        // Whoever came first keeps his file: only what is made here changes its owner.
        int fd = open_backing(folder->fd, text.c_str(), flags | O_CREAT | O_EXCL, mode);
        const bool made = fd >= 0;
        if (!made && errno == EEXIST && (flags & O_EXCL) == 0) {
          fd = open_backing(folder->fd, text.c_str(), flags | O_CREAT, mode);
        }
        if (fd < 0) return {.error = errno};
        int error = made ? owner.take(*folder, text.c_str()) : 0;
        if (error == 0) error = fs.entry(folder, text, created->entry);
        if (error != 0) {
          ::close(fd);
          return {.error = error};
        }
        if (!made && (flags & O_TRUNC) != 0) fs.injector.truncated(created->entry.attr.st_ino, 0);
        created->fd = fd;
        return {.made = made ? created->entry.attr.st_ino : 0};
      },
      [&fs, created, info = *info](fuse_req_t request, const Outcome& outcome) mutable {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          info.direct_io = outcome.no_shared_mmap ? 1 : 0;
          fs.reply_open(request, fs.inodes.get(created->entry.ino), created->fd, info,
                        &created->entry);
        }
      });
}

void remove_name(fuse_req_t req, Op op, fuse_ino_t parent, const char* name, int flags) {
  auto& fs = FileSystem::of(req);
  auto folder = fs.inodes.get(parent);
  auto named = std::make_shared<Named>(*folder, name);
  fs.flow.run(
      Request{
          .req = req, .op = op, .target = {.node = folder, .name = name}, .file = named->file()},
      [&fs, folder, named, text = std::string(name), flags](const Limits&) -> Outcome {
        if (::unlinkat(folder->fd, text.c_str(), flags) != 0) return {.error = errno};
        if (named->fd() >= 0) fs.name_removed(named->fd());
        return {};
      },
      [](fuse_req_t request, const Outcome& outcome) { fuse_reply_err(request, outcome.error); });
}

void unlink_file(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove_name(req, Op::kUnlink, parent, name, 0);
}

void remove_directory(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove_name(req, Op::kRmdir, parent, name, AT_REMOVEDIR);
}

void rename_file(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                 const char* new_name, unsigned flags) {
  auto& fs = FileSystem::of(req);
  auto folder = fs.inodes.get(parent);
  auto new_folder = fs.inodes.get(new_parent);
  auto source = std::make_shared<Named>(*folder, name);
  auto victim = std::make_shared<Named>(*new_folder, new_name);
  fs.flow.run(
      Request{.req = req,
              .op = Op::kRename,
              .target = {.node = folder, .name = name, .node2 = new_folder, .name2 = new_name},
              .file = source->file(),
              .flags = flags,
              .replaces = victim->exists()},
      [&fs, folder, new_folder, source, victim, from = std::string(name),
       to = std::string(new_name), flags](const Limits&) -> Outcome {
        if (::renameat2(folder->fd, from.c_str(), new_folder->fd, to.c_str(), flags) != 0) {
          return {.error = errno};
        }
        const auto moved = source->node(fs.inodes);
        const auto replaced = victim->node(fs.inodes);
        if (moved == replaced && moved) return {};  // two links of one file: nothing happened
        if (moved) fs.inodes.moved(moved, new_folder, to);
        if ((flags & RENAME_EXCHANGE) != 0) {
          if (replaced) fs.inodes.moved(replaced, folder, from);
        } else if (victim->fd() >= 0) {
          fs.name_removed(victim->fd());
        }
        return {};
      },
      [](fuse_req_t request, const Outcome& outcome) { fuse_reply_err(request, outcome.error); });
}

}  // namespace

void add_name_operations(fuse_lowlevel_ops& operations) {
  operations.mknod = make_node;
  operations.mkdir = make_directory;
  operations.symlink = make_symlink;
  operations.link = make_link;
  operations.create = create_file;
  operations.unlink = unlink_file;
  operations.rmdir = remove_directory;
  operations.rename = rename_file;
}

}  // namespace savegate::fusefs
