#include "gpu/simulated_device.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "gpu/device_account.h"
#include "gpu/host_backend.h"

namespace savegate::gpu {
namespace {

// The device as one process has it: its account, and the blocks that it keeps.
class SimulatedPool {
 public:
  SimulatedPool(DeviceAccount account, int ordinal)
      : account_(std::move(account)), ordinal_(ordinal) {}

  Result<void> take(std::uint64_t bytes) {
    if (const auto kept = kept_.find(bytes); kept != kept_.end()) {
      if (--kept->second == 0) kept_.erase(kept);
    } else {
      SAVEGATE_CHECK(reserve(bytes));
    }
    allocated_ += bytes;
    return {};
  }

  void give_back(std::uint64_t bytes) {
    allocated_ -= bytes;
    ++kept_[bytes];
  }

  Result<void> trim() {
    kept_.clear();
    SAVEGATE_CHECK(account_.give_back(reserved_ - allocated_));
    reserved_ = allocated_;
    return {};
  }

  Result<MemoryFacts> facts() {
    MemoryFacts facts;
    facts.allocated = allocated_;
    facts.reserved = reserved_;
    SAVEGATE_TRY(facts.free, account_.free_bytes());
    facts.reserved_peak = std::exchange(reserved_peak_, reserved_);
    facts.retries = retries_;
    facts.refusals = refusals_;
    return facts;
  }

 private:
  Result<void> reserve(std::uint64_t bytes) {
    SAVEGATE_TRY(bool granted, account_.take(bytes));
    if (!granted) {
      SAVEGATE_CHECK(trim());
      SAVEGATE_TRY(granted, account_.take(bytes));
      ++(granted ? retries_ : refusals_);
    }
    if (!granted) return fail(out_of_memory(bytes));
    reserved_ += bytes;
    reserved_peak_ = std::max(reserved_peak_, reserved_);
    return {};
  }

  Status out_of_memory(std::uint64_t bytes) const {
    Status status = system_error("allocate", "", ENOMEM);
    status.rank = ordinal_;
    status.asked = bytes;
    status.text = "device " + std::to_string(ordinal_) + ": out of memory";
    return status;
  }

  DeviceAccount account_;
  int ordinal_;
  std::map<std::uint64_t, std::uint64_t> kept_;  // freed blocks: how many of that size
  std::uint64_t allocated_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t reserved_peak_ = 0;
  std::uint64_t retries_ = 0;
  std::uint64_t refusals_ = 0;
};

class SimulatedBackend : public HostBackend {
 public:
  explicit SimulatedBackend(std::shared_ptr<SimulatedPool> pool) : pool_(std::move(pool)) {}

  std::string_view name() const override { return "simulated"; }

  Result<Buffer> allocate(std::uint64_t bytes) override {
    SAVEGATE_CHECK(pool_->take(bytes));
    auto mapped = HostBackend::allocate(bytes);
    if (!mapped) {
      pool_->give_back(bytes);
      return mapped;
    }
    std::byte* memory = mapped->get();
    auto held = std::make_shared<Buffer>(std::move(*mapped));
    return Buffer(memory, [pool = pool_, held, bytes](std::byte* /*memory*/) {
      held->reset();
      pool->give_back(bytes);
    });
  }

  Result<std::optional<MemoryFacts>> memory() override {
    SAVEGATE_TRY(const MemoryFacts facts, pool_->facts());
    return facts;
  }
  Result<void> trim() override { return pool_->trim(); }

 private:
  std::shared_ptr<SimulatedPool> pool_;
};

}  // namespace

Result<std::unique_ptr<Backend>> open_simulated(int ordinal) {
  const char* meeting = std::getenv("SAVEGATE_RENDEZVOUS");
  const std::string folder = meeting == nullptr || *meeting == '\0'
                                 ? ""
                                 : std::string(meeting) + "/device-" + std::to_string(ordinal);
  SAVEGATE_TRY(DeviceAccount account, DeviceAccount::open(folder, kSimulatedCapacity));
  auto pool = std::make_shared<SimulatedPool>(std::move(account), ordinal);
  return std::make_unique<SimulatedBackend>(std::move(pool));
}

}  // namespace savegate::gpu
