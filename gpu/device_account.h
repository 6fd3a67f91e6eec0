// Who holds how much of a simulated device, across processes.
//
// A folder with a file for each holder, locked by it as long as it lives: what a process that was
// killed had held is free again. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "faults/status.h"

namespace savegate::gpu {

class DeviceAccount {
 public:
  // "" is an account of this process alone.
  static Result<DeviceAccount> open(const std::string& folder, std::uint64_t capacity);
  DeviceAccount(DeviceAccount&& other) noexcept;
  DeviceAccount& operator=(DeviceAccount&&) = delete;
  ~DeviceAccount();

  Result<bool> take(std::uint64_t bytes);  // false: there is not so much
  Result<void> give_back(std::uint64_t bytes);
  Result<std::uint64_t> free_bytes() const;

 private:
  DeviceAccount(std::string folder, std::uint64_t capacity)
      : folder_(std::move(folder)), capacity_(capacity) {}
  Result<void> join();
  Result<void> write_own(std::uint64_t bytes);
  Result<std::uint64_t> held_by_all() const;  // under the lock

  std::string folder_;
  std::uint64_t capacity_;
  std::uint64_t own_ = 0;
  std::string own_path_;
  int own_file_ = -1;
  int lock_ = -1;
};

}  // namespace savegate::gpu
