#include "fusefs/wire.h"

#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace savegate::fusefs::wire {

namespace {

// Of <linux/fuse.h> since Linux 6.9.
struct BackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};
constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
constexpr unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);

std::atomic<bool> allow_mmap{false};
std::atomic<bool> forbid_mmap{false};
std::atomic<bool> may_pass_through{false};

}  // namespace

bool direct_mmap() { return allow_mmap; }
void forbid_direct_mmap() { forbid_mmap = true; }
bool passthrough() { return may_pass_through; }

int open_backing_id(int fuse_fd, int fd) {
  const BackingMap map{.fd = fd, .flags = 0, .padding = 0};
  const int id = ::ioctl(fuse_fd, kBackingOpen, &map);
  return id < 0 ? -errno : id;
}

void close_backing_id(int fuse_fd, int backing_id) {
  const auto id = static_cast<std::uint32_t>(backing_id);
  ::ioctl(fuse_fd, kBackingClose, &id);
}

namespace {

int send_open(fuse_req_t req, const fuse_entry_param* entry, const fuse_file_info& info) {
  return entry != nullptr ? fuse_reply_create(req, entry, &info) : fuse_reply_open(req, &info);
}

}  // namespace

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)

ssize_t read_request(int fd, void* buffer, std::size_t size, void*) {
  return ::read(fd, buffer, size);
}

ssize_t write_reply(int fd, struct iovec* parts, int count, void*) {
  return ::writev(fd, parts, count);
}

void want(fuse_conn_info* connection, std::uint64_t capabilities) {
  fuse_set_feature_flag(connection, capabilities & connection->capable_ext);
}

void refuse(fuse_conn_info* connection, std::uint64_t capabilities) {
  fuse_unset_feature_flag(connection, capabilities);
}

void negotiate(fuse_conn_info* connection, unsigned passthrough_depth) {
  allow_mmap = !forbid_mmap && fuse_set_feature_flag(connection, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
  fuse_set_feature_flag(connection, FUSE_CAP_HANDLE_KILLPRIV_V2);
  may_pass_through =
      passthrough_depth > 0 && fuse_set_feature_flag(connection, FUSE_CAP_PASSTHROUGH);
  if (may_pass_through) connection->max_backing_stack_depth = passthrough_depth;
}

int reply_open(fuse_req_t req, const fuse_entry_param* entry, fuse_file_info info,
               OpenFlags flags) {
  info.parallel_direct_writes = flags.parallel_direct_writes ? 1 : 0;
  info.backing_id = flags.backing_id;
  return send_open(req, entry, info);
}

#else

namespace {

constexpr std::uint32_t kInitExt = 1u << 30;
constexpr std::uint32_t kHandleKillprivV2 = 1u << 28;
constexpr std::uint32_t kDirectIoAllowMmap = 1u << (36 - 32);  // in flags2
constexpr std::uint32_t kPassthrough = 1u << (37 - 32);        // in flags2
constexpr std::size_t kInitInFlags = sizeof(fuse_in_header) + 12;
constexpr std::size_t kInitInFlags2 = sizeof(fuse_in_header) + 16;
constexpr std::size_t kInitOutFlags = 12;
constexpr std::size_t kInitOutFlags2 = 32;
constexpr std::size_t kInitOutStackDepth = 36;

constexpr std::uint32_t kOpenParallelDirectWrites = 1u << 6;
constexpr std::uint32_t kOpenPassthrough = 1u << 7;
constexpr std::size_t kOpenOutFlagsFromEnd = 8;
constexpr std::size_t kOpenOutBackingIdFromEnd = 4;

constexpr std::size_t kLargestPatched = 256;  // bytes: entry and open_out of CREATE are 144
static_assert(sizeof(fuse_entry_out) + sizeof(fuse_open_out) <= kLargestPatched);
static_assert(sizeof(fuse_init_out) <= kLargestPatched);

std::atomic<std::uint64_t> init_unique{0};
std::uint32_t offered = 0;   // flags of INIT
std::uint32_t offered2 = 0;  // flags2 of INIT
std::uint32_t init_flags = 0;
std::uint32_t init_flags2 = 0;
std::uint32_t stack_depth = 0;
// Of the open that this thread is replying to.
thread_local std::uint32_t open_flags = 0;
thread_local std::uint32_t open_backing_file = 0;

void set_bits(char* at, std::uint32_t bits) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  value |= bits;
  std::memcpy(at, &value, sizeof value);
}

std::uint32_t word(const char* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

ssize_t read_request(int fd, void* buffer, std::size_t size, void* /*userdata*/) {
  const ssize_t got = ::read(fd, buffer, size);
  if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return got;
  fuse_in_header header{};
  std::memcpy(&header, buffer, sizeof header);
  if (header.opcode == FUSE_INIT && got >= static_cast<ssize_t>(kInitInFlags2 + 4)) {
    const char* bytes = static_cast<const char*>(buffer);
    offered = word(bytes + kInitInFlags);
    offered2 = (offered & kInitExt) != 0 ? word(bytes + kInitInFlags2) : 0;
    init_unique = header.unique;
  }
  return got;
}

ssize_t write_reply(int fd, struct iovec* parts, int count, void* /*userdata*/) {
  fuse_out_header header{};
  if (count != 2 || parts[0].iov_len != sizeof header || parts[1].iov_len > kLargestPatched) {
    return ::writev(fd, parts, count);
  }
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  const bool init = init_unique != 0 && header.unique == init_unique;
  if (header.error != 0 || (!init && open_flags == 0)) return ::writev(fd, parts, count);

  std::array<char, kLargestPatched> body;
  const std::size_t size = parts[1].iov_len;
  std::memcpy(body.data(), parts[1].iov_base, size);
  if (init && size >= kInitOutStackDepth + 4) {
    set_bits(body.data() + kInitOutFlags, init_flags);
    set_bits(body.data() + kInitOutFlags2, init_flags2);
    set_bits(body.data() + kInitOutStackDepth, stack_depth);
    init_unique = 0;
  } else if (!init && size >= sizeof(fuse_open_out)) {
    set_bits(body.data() + size - kOpenOutFlagsFromEnd, open_flags);
    set_bits(body.data() + size - kOpenOutBackingIdFromEnd, open_backing_file);
  }
  std::array<iovec, 2> patched = {parts[0], iovec{body.data(), size}};
  return ::writev(fd, patched.data(), static_cast<int>(patched.size()));
}

void want(fuse_conn_info* connection, std::uint64_t capabilities) {
  connection->want |= connection->capable & static_cast<unsigned>(capabilities);
}

void refuse(fuse_conn_info* connection, std::uint64_t capabilities) {
  connection->want &= ~static_cast<unsigned>(capabilities);
}

void negotiate(fuse_conn_info*, unsigned passthrough_depth) {
  const std::uint32_t wanted2 =
      (forbid_mmap ? 0 : kDirectIoAllowMmap) | (passthrough_depth > 0 ? kPassthrough : 0);
  init_flags2 = offered2 & wanted2;
  init_flags = offered & (kHandleKillprivV2 | (init_flags2 != 0 ? kInitExt : 0));
  allow_mmap = (init_flags2 & kDirectIoAllowMmap) != 0;
  may_pass_through = (init_flags2 & kPassthrough) != 0;
  stack_depth = may_pass_through ? passthrough_depth : 0;
}

int reply_open(fuse_req_t req, const fuse_entry_param* entry, fuse_file_info info,
               OpenFlags flags) {
  open_flags = (flags.parallel_direct_writes ? kOpenParallelDirectWrites : 0) |
               (flags.backing_id != 0 ? kOpenPassthrough : 0);
  open_backing_file = static_cast<std::uint32_t>(flags.backing_id);
  const int failed = send_open(req, entry, info);
  open_flags = 0;
  open_backing_file = 0;
  return failed;
}

#endif

}  // namespace savegate::fusefs::wire
