// Calls that may wait for what never comes.
//
// The kernel lets nobody read the stack, the environment or the pages of a process amid an exec or
// stuck in a driver until that is over, and such a process is what a runner has to end. So the call
// is made by a thread of its own, which is left to itself if it is not back in time: it ends with
// the call, or with the program.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <utility>

namespace savegate::harness {

// What `call` returns, nothing if it is not back in time. It owns all that it uses.
template <class Call>
auto done_within(std::chrono::milliseconds time, Call call) -> std::optional<decltype(call())> {
  std::packaged_task<decltype(call())()> task(std::move(call));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(time) != std::future_status::ready) return std::nullopt;
  return result.get();
}

}  // namespace savegate::harness
