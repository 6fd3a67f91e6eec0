// NCCL, loaded when it is needed: it is large, and where GPUs are used together it is there.
//
// Looked for in SAVEGATE_NCCL (a file), in the loader's path, and in the Python installations that
// PATH leads to, whose packages bring it along.
#pragma once

#include <nccl.h>

#include <string>

#include "faults/status.h"

namespace savegate::gpu::cuda {

struct NcclLibrary {
  std::string path;  // as it was found
  int version = 0;   // 22809 is 2.28.9

  decltype(&::ncclGetVersion) get_version = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
};

// The one of this process; it stays loaded.
Result<const NcclLibrary*> nccl_library();

}  // namespace savegate::gpu::cuda
