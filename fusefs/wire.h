// What libfuse 3.14 has no words for: put into the messages on their way to the kernel.
//
// Shared mmap on handles with direct I/O, parallel direct writes, privileges that fall at a write
// without a question before it, and passthrough. libfuse 3.17 and later is asked by its own API.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

namespace savegate::fusefs::wire {

ssize_t read_request(int fd, void* buffer, std::size_t size, void* userdata);
ssize_t write_reply(int fd, struct iovec* parts, int count, void* userdata);

// For fuse_lowlevel_ops::init: FUSE_CAP_* flags, as far as the kernel has them.
void want(fuse_conn_info* connection, std::uint64_t capabilities);
void refuse(fuse_conn_info* connection, std::uint64_t capabilities);
// The same for what libfuse 3.14 does not know. A depth of 0 asks for no passthrough; else it is
// that of the file systems stacked upon each other below this one, itself included.
void negotiate(fuse_conn_info* connection, unsigned passthrough_depth);
// Known after the first request.
bool direct_mmap();
// Before the first request.
void forbid_direct_mmap();
bool passthrough();

struct OpenFlags {
  bool parallel_direct_writes = false;
  int backing_id = 0;  // 0: no passthrough
};
// Replies to open, or to create if there is an entry.
int reply_open(fuse_req_t req, const fuse_entry_param* entry, fuse_file_info info, OpenFlags flags);

// Tells the kernel of a backing file. Its id, or -errno.
int open_backing_id(int fuse_fd, int fd);
void close_backing_id(int fuse_fd, int backing_id);

}  // namespace savegate::fusefs::wire
