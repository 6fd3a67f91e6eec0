// Looking names up and reading directories.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <optional>
#include <vector>

#include "fusefs/file_system.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

struct PastEntry {
  std::string name;
  ino_t ino;
  mode_t mode;
};

// An open directory. The stream has one position, so that readers take turns.
struct Directory : std::enable_shared_from_this<Directory> {
  Directory(NodePtr of, DIR* open) : node(std::move(of)), stream(open) {}
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() { ::closedir(stream); }

  const NodePtr node;
  std::mutex mutex;
  DIR* const stream;
  off_t position = 0;
  // Of a listing that is not as it is now; from the reader's first part to his next first one.
  std::optional<std::vector<PastEntry>> past;
};

std::shared_ptr<Directory> directory(const fuse_file_info* info) {
  return std::bit_cast<Directory*>(info->fh)->shared_from_this();
}

void lookup_name(fuse_req_t req, fuse_ino_t parent, const char* name) {
  auto& fs = FileSystem::of(req);
  auto folder = fs.inodes.get(parent);
  auto entry = std::make_shared<fuse_entry_param>();
  fs.flow.run(
      Request{.req = req, .op = Op::kLookup, .target = {.node = folder, .name = name}},
      [&fs, folder, text = std::string(name), entry](const Limits& limits) -> Outcome {
        if (limits.view) {
          if (const auto shown = limits.view->name(*folder, text)) {
            if (!*shown) return {.error = ENOENT};
            fs.entry_of_past(*shown, folder, text, *entry);
            return {};
          }
        }
        return {.error = fs.entry(folder, text, *entry)};
      },
      [&fs, entry](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fs.reply_entry(request, *entry);
        }
      });
}

void forget_node(fuse_req_t req, fuse_ino_t ino, std::uint64_t lookups) {
  FileSystem::of(req).inodes.forget(ino, lookups);
  fuse_reply_none(req);
}

void forget_nodes(fuse_req_t req, std::size_t count, fuse_forget_data* forgets) {
  auto& inodes = FileSystem::of(req).inodes;
  for (std::size_t i = 0; i < count; i++) inodes.forget(forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void open_directory(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto opened = std::make_shared<std::shared_ptr<Directory>>();
  fs.flow.run(
      Request{.req = req, .op = Op::kOpendir, .target = {.node = node}, .file = node->ino},
      [node, opened](const Limits&) -> Outcome {
        const int fd = ::openat(node->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return {.error = errno};
        DIR* stream = ::fdopendir(fd);
        if (stream == nullptr) {
          const int error = errno;
          ::close(fd);
          return {.error = error};
        }
        *opened = std::make_shared<Directory>(node, stream);
        return {};
      },
      [&fs, opened, info = *info](fuse_req_t request, const Outcome& outcome) mutable {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
          return;
        }
        auto& made = *opened;
        fs.keep(made);
        info.fh = std::bit_cast<std::uint64_t>(made.get());
        if (fuse_reply_open(request, &info) != 0) fs.drop(made.get());
      });
}

std::vector<PastEntry> past_entries(Directory& folder, const View& view) {
  std::vector<PastEntry> entries;
  auto shown = view.listing(*folder.node);
  ::rewinddir(folder.stream);
  while (const dirent* next = ::readdir(folder.stream)) {
    const auto changed = shown.find(next->d_name);
    const bool hidden = changed != shown.end() && !changed->second;
    if (!hidden)
      entries.push_back({next->d_name, next->d_ino, static_cast<mode_t>(DTTOIF(next->d_type))});
    if (changed != shown.end()) shown.erase(changed);
  }
  for (const auto& [name, inode] : shown) {
    if (inode) entries.push_back({name, inode->ino, inode->mode});
  }
  return entries;
}

int list_past(fuse_req_t req, const std::vector<PastEntry>& entries, off_t offset,
              std::vector<char>& buffer, std::size_t& used) {
  for (auto at = static_cast<std::size_t>(offset); at < entries.size(); at++) {
    struct stat attributes {};
    attributes.st_ino = entries[at].ino;
    attributes.st_mode = entries[at].mode;
    const std::size_t size =
        fuse_add_direntry(req, buffer.data() + used, buffer.size() - used, entries[at].name.c_str(),
                          &attributes, static_cast<off_t>(at + 1));
    if (size > buffer.size() - used) break;
    used += size;
  }
  return 0;
}

// 0 or errno; `used` bytes of the buffer hold entries.
int list(fuse_req_t req, Directory& folder, off_t offset, const View* view,
         std::vector<char>& buffer, std::size_t& used) {
  std::lock_guard lock(folder.mutex);
  if (offset == 0) folder.past.reset();
  if (offset == 0 && view) {
    folder.past = past_entries(folder, *view);
    folder.position = -1;  // the stream is elsewhere
  }
  if (folder.past) return list_past(req, *folder.past, offset, buffer, used);
  if (offset != folder.position) {
    ::seekdir(folder.stream, offset);
    folder.position = offset;
  }
  while (true) {
    errno = 0;
    const dirent* next = ::readdir(folder.stream);
    if (next == nullptr) return used == 0 ? errno : 0;
    struct stat attributes {};
    attributes.st_ino = next->d_ino;
    attributes.st_mode = static_cast<mode_t>(DTTOIF(next->d_type));
    const std::size_t size = fuse_add_direntry(req, buffer.data() + used, buffer.size() - used,
                                               next->d_name, &attributes, next->d_off);
    if (size > buffer.size() - used) {
      ::seekdir(folder.stream, folder.position);  // it begins the next reply
      return 0;
    }
    used += size;
    folder.position = next->d_off;
  }
}

void read_directory(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset,
                    fuse_file_info* info) {
  struct Listing {
    std::vector<char> bytes;
    std::size_t used = 0;
  };
  auto folder = directory(info);
  auto listing = std::make_shared<Listing>();
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kReaddir,
              .target = {.node = folder->node},
              .file = folder->node->ino,
              .offset = static_cast<std::uint64_t>(offset),
              .length = size},
      [req, folder, listing, size, offset](const Limits& limits) -> Outcome {
        listing->bytes.resize(size);
        return {.error = list(req, *folder, offset, limits.view, listing->bytes, listing->used)};
      },
      [listing](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_buf(request, listing->bytes.data(), listing->used);
        }
      });
}

void release_directory(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  auto folder = directory(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kReleasedir,
              .target = {.node = folder->node},
              .file = folder->node->ino},
      [](const Limits&) { return Outcome{}; },
      [folder](fuse_req_t request, const Outcome& outcome) {
        FileSystem::of(request).drop(folder.get());
        fuse_reply_err(request, outcome.error);
      });
}

void sync_directory(fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* info) {
  auto folder = directory(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kFsyncdir,
              .target = {.node = folder->node},
              .file = folder->node->ino,
              .flags = data_only != 0 ? 1u : 0u},
      [folder, data_only](const Limits&) {
        const int fd = ::dirfd(folder->stream);
        return outcome_of(data_only != 0 ? ::fdatasync(fd) : ::fsync(fd));
      },
      reply_status);
}

}  // namespace

void add_directory_operations(fuse_lowlevel_ops& operations) {
  operations.lookup = lookup_name;
  operations.forget = forget_node;
  operations.forget_multi = forget_nodes;
  operations.opendir = open_directory;
  operations.readdir = read_directory;
  operations.releasedir = release_directory;
  operations.fsyncdir = sync_directory;
}

}  // namespace savegate::fusefs
