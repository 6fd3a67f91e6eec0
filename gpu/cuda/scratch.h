// Working memory of a launcher, which grows to what was needed most and is kept between its calls.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "gpu/cuda/device.h"

namespace savegate::gpu::cuda {

// kAllocate and kGiveBack are Device's for the kind of memory.
template <Result<void*> (Device::*kAllocate)(std::uint64_t), void (Device::*kGiveBack)(void*)>
class Scratch {
 public:
  explicit Scratch(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  std::uint8_t* data() const { return memory_; }
  std::uint64_t bytes() const { return bytes_; }

  // At least so many bytes; what was there is lost where it has to grow, and the answer true.
  Result<bool> reserve(std::uint64_t bytes) {
    if (bytes <= bytes_) return false;
    release();
    SAVEGATE_TRY(void* memory, ((*device_).*kAllocate)(bytes));
    memory_ = static_cast<std::uint8_t*>(memory);
    bytes_ = bytes;
    return true;
  }

 private:
  void release() {
    if (memory_ != nullptr) ((*device_).*kGiveBack)(std::exchange(memory_, nullptr));
    bytes_ = 0;
  }

  std::shared_ptr<Device> device_;
  std::uint8_t* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

using DeviceScratch = Scratch<&Device::allocate, &Device::give_back>;
using PinnedScratch = Scratch<&Device::allocate_pinned, &Device::give_back_pinned>;

}  // namespace savegate::gpu::cuda
