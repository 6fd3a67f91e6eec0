#include "fusefs/bench/async_write.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>

namespace savegate::fusefs::bench {

namespace {

constexpr std::size_t kBytes = 4096;
alignas(kBytes) std::array<char, kBytes> bytes{};

}  // namespace

int write_by_libaio(int fd) {
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 1, &context) != 0) return -1;
  iocb request{};
  request.aio_lio_opcode = IOCB_CMD_PWRITE;
  request.aio_fildes = static_cast<std::uint32_t>(fd);
  request.aio_buf = std::bit_cast<std::uint64_t>(bytes.data());
  request.aio_nbytes = bytes.size();
  iocb* const requests = &request;
  if (::syscall(SYS_io_submit, context, 1, &requests) != 1) return -1;
  io_event event{};
  const long done = ::syscall(SYS_io_getevents, context, 1, 1, &event, nullptr);
  ::syscall(SYS_io_destroy, context);
  return done == 1 ? 0 : -1;
}

int write_by_io_uring(int fd) {
  io_uring_params parameters{};
  const auto ring = static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters));
  if (ring < 0) return -1;
  const std::size_t ring_size =
      parameters.sq_off.array + parameters.sq_entries * sizeof(std::uint32_t);
  const std::size_t entries_size = parameters.sq_entries * sizeof(io_uring_sqe);
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  auto* submission = static_cast<char*>(
      ::mmap(nullptr, ring_size, kProtection, MAP_SHARED, ring, IORING_OFF_SQ_RING));
  auto* entry = static_cast<io_uring_sqe*>(
      ::mmap(nullptr, entries_size, kProtection, MAP_SHARED, ring, IORING_OFF_SQES));
  if (submission == MAP_FAILED || entry == MAP_FAILED) return -1;
  *entry = {};
  entry->opcode = IORING_OP_WRITE;
  entry->fd = fd;
  entry->addr = std::bit_cast<std::uint64_t>(bytes.data());
  entry->len = static_cast<std::uint32_t>(bytes.size());
  *reinterpret_cast<std::uint32_t*>(submission + parameters.sq_off.array) = 0;
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(submission + parameters.sq_off.tail), 1,
                   __ATOMIC_RELEASE);
  const long done = ::syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0);
  ::munmap(entry, entries_size);
  ::munmap(submission, ring_size);
  ::close(ring);
  return done == 1 ? 0 : -1;
}

}  // namespace savegate::fusefs::bench
