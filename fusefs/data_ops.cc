// open, read, write, close and what else acts on an open file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <vector>

#include "fusefs/file_system.h"

namespace savegate::fusefs {

using faults::Op;

namespace {

// One buffer a thread, grown to the largest read.
char* read_buffer(std::size_t size) {
  thread_local std::vector<char> buffer;
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

Outcome read_all(int fd, char* data, std::uint64_t size, std::uint64_t offset) {
  Outcome outcome{.data = data};
  while (outcome.done < size) {
    const ssize_t got = ::pread(fd, data + outcome.done, size - outcome.done,
                                static_cast<off_t>(offset + outcome.done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && outcome.done == 0) return {.error = errno};
    if (got <= 0) break;
    outcome.done += static_cast<std::uint64_t>(got);
  }
  return outcome;
}

Outcome write_all(int fd, std::string_view data, std::uint64_t offset) {
  Outcome outcome;
  while (outcome.done < data.size()) {
    const ssize_t put = ::pwrite(fd, data.data() + outcome.done, data.size() - outcome.done,
                                 static_cast<off_t>(offset + outcome.done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && outcome.done == 0) return {.error = errno};
    if (put <= 0) break;  // what was done is told; the next write meets the error again
    outcome.done += static_cast<std::uint64_t>(put);
  }
  return outcome;
}

void open_file(fuse_req_t req, fuse_ino_t ino, fuse_file_info* info) {
  auto& fs = FileSystem::of(req);
  auto node = fs.inodes.get(ino);
  auto fd = std::make_shared<int>(-1);
  fs.flow.run(
      Request{.req = req,
              .op = Op::kOpen,
              .target = {.node = node},
              .file = node->ino,
              .flags = static_cast<std::uint32_t>(info->flags)},
      [&fs, node, fd, flags = info->flags, rights = WriterRights(req)](const Limits&) -> Outcome {
        *fd = open_backing(AT_FDCWD, descriptor_path(node->fd).c_str(),
                           flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL), 0);
        if (*fd < 0) return {.error = errno};
        if ((flags & O_TRUNC) != 0) {
          fs.injector.truncated(node->ino, 0);
          rights.drop_setid(*node);
        }
        return {};
      },
      [&fs, node, fd, info = *info](fuse_req_t request, const Outcome& outcome) mutable {
        if (outcome.name_lost) {
          fuse_reply_err(request, ESTALE);  // the kernel looks the name up again
        } else if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          info.direct_io = outcome.no_shared_mmap ? 1 : 0;
          fs.reply_open(request, node, *fd, info, nullptr);
        }
      });
}

void read_file(fuse_req_t req, fuse_ino_t, std::size_t size, off_t offset, fuse_file_info* info) {
  auto handle = FileSystem::handle(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kRead,
              .target = {.node = handle->node},
              .file = handle->node->ino,
              .offset = static_cast<std::uint64_t>(offset),
              .length = size,
              .source_fd = handle->fd,
              .source_offset = static_cast<std::uint64_t>(offset)},
      [handle, offset](const Limits& limits) {
        const auto from = static_cast<std::uint64_t>(offset);
        const std::uint64_t most = limits.view
                                       ? limits.view->readable(*handle->node, from, limits.allowed)
                                       : limits.allowed;
        return read_all(handle->fd, read_buffer(most), most, from);
      },
      [](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_buf(request, outcome.data, outcome.done);
        }
      });
}

void write_file(fuse_req_t req, fuse_ino_t, const char* data, std::size_t size, off_t offset,
                fuse_file_info* info) {
  auto handle = FileSystem::handle(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kWrite,
              .target = {.node = handle->node},
              .file = handle->node->ino,
              .offset = static_cast<std::uint64_t>(offset),
              .length = size,
              .payload = {data, size}},
      [handle, offset, rights = WriterRights(req)](const Limits& limits) {
        const Outcome outcome = write_all(handle->fd, limits.payload.substr(0, limits.allowed),
                                          static_cast<std::uint64_t>(offset));
        if (outcome.done > 0) rights.drop_setid(*handle->node);
        return outcome;
      },
      [size](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_write(request, outcome.lied ? size : outcome.done);
        }
      });
}

void close_file(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  auto handle = FileSystem::handle(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kClose,
              .target = {.node = handle->node},
              .file = handle->node->ino},
      [handle](const Limits&) -> Outcome {
        // What the backing file system has to say at close, it says at every close.
        const int copy = ::fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0) return {.error = errno};
        return outcome_of(::close(copy));
      },
      reply_status);
}

void release_file(fuse_req_t req, fuse_ino_t, fuse_file_info* info) {
  auto& fs = FileSystem::of(req);
  auto handle = FileSystem::handle(info);
  auto node = handle->node;
  fs.flow.run(
      Request{.req = req, .op = Op::kRelease, .target = {.node = node}, .file = node->ino},
      [](const Limits&) { return Outcome{}; },
      // Whatever a rule makes of it, the file is closed.
      [&fs, handle](fuse_req_t request, const Outcome& outcome) {
        fs.handle_closed(*handle);
        fuse_reply_err(request, outcome.error);
      });
}

void sync_file(fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* info) {
  auto handle = FileSystem::handle(info);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kFsync,
              .target = {.node = handle->node},
              .file = handle->node->ino,
              .flags = data_only != 0 ? 1u : 0u},
      [handle, data_only](const Limits&) {
        return outcome_of(data_only != 0 ? ::fdatasync(handle->fd) : ::fsync(handle->fd));
      },
      reply_status);
}

void allocate_file(fuse_req_t req, fuse_ino_t, int mode, off_t offset, off_t length,
                   fuse_file_info* info) {
  auto& fs = FileSystem::of(req);
  auto handle = FileSystem::handle(info);
  const bool punches = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
  fs.flow.run(
      Request{.req = req,
              .op = Op::kFallocate,
              .target = {.node = handle->node},
              .file = handle->node->ino,
              .offset = static_cast<std::uint64_t>(offset),
              .length = static_cast<std::uint64_t>(length),
              .flags = static_cast<std::uint32_t>(mode),
              .takes_space = !punches},
      [&fs, handle, mode, offset, length, punches, rights = WriterRights(req)](const Limits&) {
        Outcome outcome = outcome_of(::fallocate(handle->fd, mode, offset, length));
        if (outcome.error != 0) return outcome;
        if (punches) {
          fs.injector.punched(handle->node->ino, static_cast<std::uint64_t>(offset),
                              static_cast<std::uint64_t>(offset + length));
        }
        rights.drop_setid(*handle->node);
        outcome.done = static_cast<std::uint64_t>(length);
        return outcome;
      },
      reply_status);
}

void copy_range(fuse_req_t req, fuse_ino_t, off_t offset_in, fuse_file_info* info_in, fuse_ino_t,
                off_t offset_out, fuse_file_info* info_out, std::size_t length, int flags) {
  auto from = FileSystem::handle(info_in);
  auto to = FileSystem::handle(info_out);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kCopyFileRange,
              .target = {.node = to->node, .node2 = from->node},
              .file = to->node->ino,
              .offset = static_cast<std::uint64_t>(offset_out),
              .length = length,
              .source_fd = from->fd,
              .source_offset = static_cast<std::uint64_t>(offset_in)},
      [from, to, offset_in, offset_out, flags,
       rights = WriterRights(req)](const Limits& limits) -> Outcome {
        off_t in = offset_in;
        off_t out = offset_out;
        const ssize_t copied = ::copy_file_range(from->fd, &in, to->fd, &out, limits.allowed,
                                                 static_cast<unsigned>(flags));
        if (copied < 0) return {.error = errno};
        if (copied > 0) rights.drop_setid(*to->node);
        return {.done = static_cast<std::uint64_t>(copied)};
      },
      [length](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_write(request, outcome.lied ? length : outcome.done);
        }
      });
}

void seek_file(fuse_req_t req, fuse_ino_t, off_t offset, int whence, fuse_file_info* info) {
  auto handle = FileSystem::handle(info);
  auto found = std::make_shared<off_t>(0);
  FileSystem::of(req).flow.run(
      Request{.req = req,
              .op = Op::kLseek,
              .target = {.node = handle->node},
              .file = handle->node->ino,
              .offset = static_cast<std::uint64_t>(offset)},
      [handle, found, offset, whence](const Limits&) -> Outcome {
        *found = ::lseek(handle->fd, offset, whence);
        return {.error = *found < 0 ? errno : 0};
      },
      [found](fuse_req_t request, const Outcome& outcome) {
        if (outcome.error != 0) {
          fuse_reply_err(request, outcome.error);
        } else {
          fuse_reply_lseek(request, *found);
        }
      });
}

}  // namespace

void add_data_operations(fuse_lowlevel_ops& operations) {
  operations.open = open_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.flush = close_file;
  operations.release = release_file;
  operations.fsync = sync_file;
  operations.fallocate = allocate_file;
  operations.copy_file_range = copy_range;
  operations.lseek = seek_file;
}

}  // namespace savegate::fusefs
