#include "fusefs/stalls.h"

#include <algorithm>
#include <atomic>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/fixedsize_stack.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace savegate::fusefs {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kFiberStack = 64 * 1024;        // bytes, touched only as far as used
constexpr std::chrono::milliseconds kDyingCheck{20};  // the kernel interrupts a request only once

// Touched by the stall thread alone.
struct Entry {
  boost::fibers::mutex mutex;
  boost::fibers::condition_variable changed;
  std::optional<Wake> wake;
  bool interrupted = false;
  Stall stall;
};

struct Limit {
  std::optional<std::chrono::nanoseconds> held;
  std::function<void()> overdue;
};

Wake wait_in_fiber(Entry& entry, const Limit& limit) {
  std::unique_lock lock(entry.mutex);
  auto overdue = limit.held ? Clock::now() + *limit.held : Clock::time_point::max();
  entry.interrupted |= entry.stall.dying();  // a dying caller is not interrupted again
  const auto deadline =
      entry.stall.delay ? Clock::now() + *entry.stall.delay : Clock::time_point::max();
  while (!entry.wake) {
    if (entry.interrupted && entry.stall.dying()) return Wake::kInterrupted;
    if (Clock::now() >= deadline) return Wake::kElapsed;
    if (Clock::now() >= overdue) {
      limit.overdue();
      overdue = Clock::time_point::max();
    }
    auto until = std::min(deadline, overdue);
    if (entry.interrupted) until = std::min(until, Clock::now() + kDyingCheck);
    if (until == Clock::time_point::max()) {
      entry.changed.wait(lock);
    } else {
      entry.changed.wait_until(lock, until);
    }
  }
  return *entry.wake;
}

}  // namespace

struct Stalls::Impl {
  explicit Impl(WorkerPool& workers) : pool(workers), thread([this] { run(); }) {}

  void run() {
    while (true) {
      const auto batch = take();
      if (batch.empty()) break;
      for (const auto& command : batch) command();
    }
    for (auto& [id, entry] : entries) wake(*entry, Wake::kShutdown);
    while (fibers > 0) boost::this_fiber::yield();
  }

  // Waits for commands; none: the end. Only the fiber that called waits, the others run on.
  std::vector<std::function<void()>> take() {
    std::unique_lock lock(mutex);
    arrived.wait(lock, [this] { return ending || !commands.empty(); });
    return std::exchange(commands, {});
  }

  void post(std::function<void()> command) {
    std::lock_guard lock(mutex);
    commands.push_back(std::move(command));
    arrived.notify_one();
  }

  void end() {
    std::lock_guard lock(mutex);
    ending = true;
    arrived.notify_one();
  }

  static void wake(Entry& entry, Wake why) {
    if (!entry.wake) entry.wake = why;
    entry.changed.notify_all();
  }

  void start(StallId id, Stall stall) {
    auto found = entries.find(id);
    if (found == entries.end()) return;
    auto entry = found->second;
    entry->stall = std::move(stall);
    fibers++;
    boost::fibers::fiber(std::allocator_arg, boost::fibers::fixedsize_stack(kFiberStack),
                         [this, id, entry] {
                           Wake why = wait_in_fiber(*entry, limit);
                           entries.erase(id);
                           held--;
                           pool.post([then = std::move(entry->stall.then), why] { then(why); });
                           fibers--;
                         })
        .detach();
  }

  std::size_t release(const std::string& rule) {
    std::size_t released = 0;
    for (auto& [id, entry] : entries) {
      const auto& rules = entry->stall.rules;
      if (entry->wake) continue;
      if (!rule.empty() && std::find(rules.begin(), rules.end(), rule) == rules.end()) continue;
      wake(*entry, Wake::kReleased);
      released++;
    }
    return released;
  }

  WorkerPool& pool;
  std::atomic<StallId> next{1};
  std::atomic<std::size_t> held{0};
  std::mutex mutex;  // of the two below; of the standard library, as threads meet at it
  std::vector<std::function<void()>> commands;
  bool ending = false;
  boost::fibers::condition_variable_any arrived;
  // What follows is of the stall thread alone.
  Limit limit;
  std::unordered_map<StallId, std::shared_ptr<Entry>> entries;
  std::size_t fibers = 0;
  std::thread thread;
};

Stalls::Stalls(WorkerPool& pool) : impl_(std::make_unique<Impl>(pool)) {}

Stalls::~Stalls() {
  impl_->end();
  impl_->thread.join();
}

StallId Stalls::reserve() {
  StallId id = impl_->next++;
  impl_->post([impl = impl_.get(), id] { impl->entries.emplace(id, std::make_shared<Entry>()); });
  return id;
}

void Stalls::park(StallId id, Stall stall) {
  impl_->held++;
  impl_->post([impl = impl_.get(), id, moved = std::make_shared<Stall>(std::move(stall))] {
    impl->start(id, std::move(*moved));
  });
}

void Stalls::interrupt(StallId id) {
  impl_->post([impl = impl_.get(), id] {
    auto found = impl->entries.find(id);
    if (found == impl->entries.end()) return;
    found->second->interrupted = true;
    found->second->changed.notify_all();
  });
}

std::size_t Stalls::release(const std::string& rule) {
  auto count = std::make_shared<std::promise<std::size_t>>();
  auto answer = count->get_future();
  impl_->post([impl = impl_.get(), rule, count] { count->set_value(impl->release(rule)); });
  return answer.get();
}

void Stalls::set_limit(std::chrono::nanoseconds limit, std::function<void()> overdue) {
  impl_->post([impl = impl_.get(), limit, overdue = std::move(overdue)] {
    impl->limit = {limit, overdue};
  });
}

void Stalls::wake_all() {
  impl_->post([impl = impl_.get()] {
    for (auto& [id, entry] : impl->entries) impl->wake(*entry, Wake::kShutdown);
  });
}

std::size_t Stalls::held() const { return impl_->held; }

}  // namespace savegate::fusefs
