#include "fusefs/wire.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace savegate::fusefs::wire {

namespace {

constexpr std::uint32_t kInitExt = 1u << 30;
constexpr std::uint32_t kDirectIoAllowMmap2 = 1u << (36 - 32);  // in flags2
constexpr std::size_t kInitInFlags = sizeof(fuse_in_header) + 12;
constexpr std::size_t kInitInFlags2 = sizeof(fuse_in_header) + 16;
constexpr std::size_t kInitOutFlags = 12;
constexpr std::size_t kInitOutFlags2 = 32;
constexpr std::size_t kOpenOutFlagsFromEnd = 8;
constexpr std::size_t kLargestPatched = 256;  // bytes: entry and open_out of CREATE are 144
static_assert(sizeof(fuse_entry_out) + sizeof(fuse_open_out) <= kLargestPatched);
static_assert(sizeof(fuse_init_out) <= kLargestPatched);

std::atomic<std::uint64_t> init_unique{0};
std::atomic<bool> allow_mmap{false};
std::atomic<bool> forbid_mmap{false};
thread_local std::uint32_t open_flags = 0;

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
    const bool extended = (word(bytes + kInitInFlags) & kInitExt) != 0;
    allow_mmap =
        extended && !forbid_mmap && (word(bytes + kInitInFlags2) & kDirectIoAllowMmap2) != 0;
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
  const bool init = allow_mmap && header.unique == init_unique;
  if (header.error != 0 || (!init && open_flags == 0)) return ::writev(fd, parts, count);

  std::array<char, kLargestPatched> body;
  const std::size_t size = parts[1].iov_len;
  std::memcpy(body.data(), parts[1].iov_base, size);
  if (init && size >= kInitOutFlags2 + 4) {
    set_bits(body.data() + kInitOutFlags, kInitExt);
    set_bits(body.data() + kInitOutFlags2, kDirectIoAllowMmap2);
    init_unique = 0;
  } else if (!init && size >= sizeof(fuse_open_out)) {
    set_bits(body.data() + size - kOpenOutFlagsFromEnd, open_flags);
  }
  std::array<iovec, 2> patched = {parts[0], iovec{body.data(), size}};
  return ::writev(fd, patched.data(), static_cast<int>(patched.size()));
}

bool direct_mmap() { return allow_mmap; }
void forbid_direct_mmap() { forbid_mmap = true; }

ScopedOpenFlags::ScopedOpenFlags(std::uint32_t flags) { open_flags = flags; }
ScopedOpenFlags::~ScopedOpenFlags() { open_flags = 0; }

}  // namespace savegate::fusefs::wire
