// Breaks of what saves and loads do with the memory of devices.

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

class KeepPoolAfterLoad : public Restorer {
 public:
  using Restorer::Restorer;
  Result<void> give_cache_back() override { return {}; }
};

class KeepOptimizerOnDevice : public Saver {
 public:
  using Saver::Saver;
  Result<void> release_copy() override {
    for (std::size_t i = 0; i < copy_.memory.size(); ++i) {
      if (copy_.tensors[i].kind == "optimizer") kept_.push_back(std::move(copy_.memory[i]));
    }
    return Saver::release_copy();
  }

 private:
  std::vector<gpu::Buffer> kept_;
};

class RetryIsOutOfMemory : public Saver {
 public:
  using Saver::Saver;
  Result<void> take_copy() override {
    SAVEGATE_CHECK(Saver::take_copy());
    SAVEGATE_TRY(const auto facts, job_.backend.memory());
    if (!facts || facts->retries == 0) return {};
    Status status = system_error("allocate", "", ENOMEM);
    status.rank = job_.rank;
    status.asked = copy_.tensors.front().tensor.bytes();
    return fail(std::move(status));
  }
};

class SilentDeviceMemory : public Reporter {
 public:
  using Reporter::Reporter;
  worker::Memory memory(gpu::Backend& backend) override {
    worker::Memory facts = Reporter::memory(backend);
    facts["gpu_allocated"].reset();
    return facts;
  }
};

}  // namespace

std::vector<Break> device_breaks() {
  return {
      {"keep-pool-after-load", "what the load has used of the device stays with the allocator",
       replace_restorer<KeepPoolAfterLoad>},
      {"keep-optimizer-on-device", "a save's copy of the optimizer stays on the device",
       replace_saver<KeepOptimizerOnDevice>},
      {"retry-is-out-of-memory", "an allocation that succeeds at the second try fails the save",
       replace_saver<RetryIsOutOfMemory>},
      {"silent-device-memory", "what is allocated on the device is not recorded",
       replace_reporter<SilentDeviceMemory>},
  };
}

}  // namespace savegate::reference
