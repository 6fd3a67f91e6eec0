// A simulated device: the host's memory behind an allocator and a capacity as a device has, for
// machines without one.
//
// It computes as the host does; what it adds is the account. Freed blocks stay with the process and
// serve only requests of the same size, as those of caching allocators do, until they are trimmed.
// All processes whose SAVEGATE_RENDEZVOUS is the same share the devices, one for each rank; without
// that variable a process has its device to itself. Memory that is never written costs nothing, so
// a device can be filled.
#pragma once

#include <memory>

#include "gpu/backend.h"

namespace savegate::gpu {

inline constexpr std::uint64_t kSimulatedCapacity = 4ULL << 30;  // bytes of each device

Result<std::unique_ptr<Backend>> open_simulated(int ordinal);

}  // namespace savegate::gpu
