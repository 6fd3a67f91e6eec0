// Staging: host memory that a snapshot of the state is taken into, so that the state may change
// while the snapshot is written. Of the device's backend, where that is pinned: copies run at full
// speed, and all of a snapshot's are under way at once.
//
// Blocks are exactly as large as the tensors that they hold: rounding up, as caching allocators do,
// can take nearly twice the memory. A snapshot that goes gives its blocks back for the next one;
// trim() gives those that wait back to the system. snapshot() and trim() are for the backend's
// thread; a snapshot may go in any.
// A snapshot may outlive its Staging, but not the backend.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "faults/status.h"
#include "gpu/backend.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

class Staging {
 public:
  explicit Staging(gpu::Backend& device) : device_(device) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  virtual ~Staging() = default;

  // The state as it is now, its tensors in host memory.
  virtual Result<State> snapshot(const State& state);
  virtual void trim();

  struct Bytes {
    std::uint64_t held = 0;  // in use or waiting
    std::uint64_t used = 0;  // by snapshots, as their tensors need
  };
  Bytes bytes() const;

 private:
  struct Pool {
    mutable std::mutex mutex;
    std::multimap<std::uint64_t, gpu::Buffer> waiting;  // by size
    Bytes bytes;
  };
  Result<gpu::Buffer> take(std::uint64_t bytes);
  Result<void> start_copy(gpu::Tensor& tensor, std::vector<gpu::Buffer>& blocks,
                          std::vector<std::unique_ptr<gpu::Pending>>& copies);

  gpu::Backend& device_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace savegate::reference
