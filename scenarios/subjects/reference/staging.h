// Staging: host memory that a snapshot of the state is taken into, so that the state may change
// while the snapshot is written.
//
// Blocks are exactly as large as the tensors that they hold: rounding up, as caching allocators do,
// can take nearly twice the memory. A snapshot that goes gives its blocks back for the next one;
// trim() gives those that wait back to the system. Thread-safe.
// A snapshot may outlive its Staging, but not the backend.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "faults/status.h"
#include "gpu/backend.h"
#include "scenarios/subjects/reference/state.h"

namespace savegate::reference {

class Staging {
 public:
  explicit Staging(gpu::Backend& host) : host_(host) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  virtual ~Staging() = default;

  // The state as it is now, its tensors in host memory.
  virtual Result<State> snapshot(gpu::Backend& device, const State& state);
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

  gpu::Backend& host_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace savegate::reference
