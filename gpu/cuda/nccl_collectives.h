// Collectives between devices over NCCL, with a deadline.
//
// The communicator is a non-blocking one, and every wait for it watches the clock: NCCL by itself
// waits for ever for a peer that is dead or stopped. At the deadline, or at NCCL's own error, the
// communicator is aborted, which also ends the kernel that waits on the device.
#pragma once

#include <chrono>
#include <memory>

#include "gpu/collectives.h"
#include "gpu/cuda/device.h"

namespace savegate::gpu::cuda {

// The ranks meet over `side`. `timeout` is that of each operation; to open may take a minute.
Result<std::unique_ptr<Collectives>> open_nccl(std::shared_ptr<Device> device, Collectives& side,
                                               std::chrono::milliseconds timeout);

}  // namespace savegate::gpu::cuda
