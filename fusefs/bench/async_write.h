// One write through libaio's and io_uring's system calls, waited for.
#pragma once

namespace savegate::fusefs::bench {

// 4 KiB at offset 0. 0, or -1 with errno where the kernel lacks it; else it returns when the write
// is complete.
int write_by_libaio(int fd);
int write_by_io_uring(int fd);

}  // namespace savegate::fusefs::bench
