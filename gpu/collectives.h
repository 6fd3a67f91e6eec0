// Collectives: what ranks do together, with a deadline, and an error that names the peer.
//
// Every operation is a full exchange: each rank hears from every other directly, so that a peer
// whose process is gone is noticed at once by all, and a silent one at the deadline. After an error
// the communicator is broken: every further operation fails.
//
// All ranks must call the same operations in the same order. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::gpu {

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;

  virtual Result<void> barrier() = 0;
  // Each rank's bytes, in rank order; sizes must be equal on all ranks.
  virtual Result<std::vector<std::string>> all_gather(const std::string& own) = 0;
  // The same where each rank has its own size.
  virtual Result<std::vector<std::string>> all_gather_varied(const std::string& own) = 0;
  // The root's bytes; `own` counts on the root only.
  virtual Result<std::string> broadcast(const std::string& own, int root) = 0;
};

struct GlooOptions {
  int rank = 0;
  int world = 1;
  std::string rendezvous;                   // a directory of these ranks and this life alone
  std::chrono::milliseconds timeout{5000};  // of each operation, and of the rendezvous
};

// Gloo over TCP on the loopback interface; ports are the kernel's choice. The process ignores
// SIGPIPE from here on.
Result<std::unique_ptr<Collectives>> open_gloo(const GlooOptions& options);

}  // namespace savegate::gpu
