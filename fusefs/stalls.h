// Stalls: operations that wait, each parked in a fiber, none holding a thread.
//
//   StallId id = stalls.reserve();                 // from here on interrupt(id) is heard
//   fuse_req_interrupt_func(req, …, id);
//   stalls.park(id, {.delay = 200ms, .then = [=](Wake why) { … }});
//
// `then` is called once, on the worker pool. An interrupt ends a stall only if `dying` says that
// the caller is being killed: a program that merely handles a signal stays held, as it would in an
// uninterruptible sleep. Ids of stalls that are over are ignored everywhere.
//
// All fibers live on one thread; every call is a command posted to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fusefs/worker_pool.h"

namespace savegate::fusefs {

using StallId = std::uint64_t;
enum class Wake : std::uint8_t { kElapsed, kReleased, kInterrupted, kShutdown };

struct Stall {
  std::optional<std::chrono::nanoseconds> delay;  // none: until released
  std::vector<std::string> rules;                 // release() by any of these names
  std::function<bool()> dying;                    // asked on the stall thread after an interrupt
  std::function<void(Wake)> then;
};

class Stalls {
 public:
  explicit Stalls(WorkerPool& pool);
  ~Stalls();  // wakes all with kShutdown
  Stalls(const Stalls&) = delete;
  Stalls& operator=(const Stalls&) = delete;

  StallId reserve();
  void park(StallId id, Stall stall);
  void interrupt(StallId id);
  // Wakes those held by the rule, or all if it is "". Returns how many.
  std::size_t release(const std::string& rule);
  std::size_t held() const;
  void wake_all();  // with kShutdown, as the end does
  // Calls `overdue` (on the stall thread) when something that is parked from now on has been held
  // for so long.
  void set_limit(std::chrono::nanoseconds limit, std::function<void()> overdue);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace savegate::fusefs
