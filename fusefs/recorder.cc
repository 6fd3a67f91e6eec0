#include "fusefs/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace savegate::fusefs {

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Result<std::unique_ptr<Recorder>> Recorder::create(const std::string& trace_path,
                                                   const std::string& fired_path) {
  auto recorder = std::unique_ptr<Recorder>(new Recorder);
  if (!trace_path.empty()) {
    SAVEGATE_TRY(recorder->trace_, faults::TraceWriter::create(trace_path));
  }
  if (!fired_path.empty()) {
    recorder->fired_path_ = fired_path;
    recorder->fired_fd_ =
        ::open(fired_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (recorder->fired_fd_ < 0) return fail(system_error("open", fired_path));
  }
  return recorder;
}

Recorder::~Recorder() {
  if (fired_fd_ >= 0) ::close(fired_fd_);
}

std::uint64_t Recorder::tick() {
  return trace_ ? trace_->tick() : ticks_.fetch_add(1, std::memory_order_relaxed) + 1;
}

void Recorder::trace(faults::TraceRecord& record) {
  std::lock_guard lock(order_);
  record.end_seq = trace_->tick();
  record.end_ns = monotonic_ns();
  trace_->append(record);
}

void Recorder::fired(const faults::FiredRecord& record) {
  std::string line = faults::to_json_line(record);
  std::map<std::uint64_t, std::function<void()>> waiters;
  {
    const std::lock_guard lock(fired_mutex_);
    fired_.push_back(line);
    waiters.swap(waiters_);
    if (fired_fd_ >= 0) {
      line += '\n';
      const ssize_t written = ::write(fired_fd_, line.data(), line.size());
      if (written != static_cast<ssize_t>(line.size()) && fired_error_ == 0) {
        fired_error_ = written < 0 ? errno : ENOSPC;
      }
    }
  }
  for (const auto& [number, tell] : waiters) tell();
}

std::uint64_t Recorder::await_fired(std::size_t count, std::function<void()> tell) {
  {
    const std::lock_guard lock(fired_mutex_);
    if (fired_.size() <= count && !fired_over_) {
      waiters_.emplace(++last_waiter_, std::move(tell));
      return last_waiter_;
    }
  }
  tell();
  return 0;
}

void Recorder::forget_waiter(std::uint64_t number) {
  const std::lock_guard lock(fired_mutex_);
  waiters_.erase(number);
}

void Recorder::no_more_fired() {
  std::map<std::uint64_t, std::function<void()>> waiters;
  {
    const std::lock_guard lock(fired_mutex_);
    fired_over_ = true;
    waiters.swap(waiters_);
  }
  for (const auto& [number, tell] : waiters) tell();
}

bool Recorder::fired_is_over() const {
  const std::lock_guard lock(fired_mutex_);
  return fired_over_;
}

std::vector<std::string> Recorder::fired_from(std::size_t index, std::size_t most) const {
  const std::lock_guard lock(fired_mutex_);
  if (index >= fired_.size()) return {};
  const auto first = fired_.begin() + static_cast<std::ptrdiff_t>(index);
  return {first, first + static_cast<std::ptrdiff_t>(std::min(most, fired_.size() - index))};
}

std::size_t Recorder::fired_count() const {
  std::lock_guard lock(fired_mutex_);
  return fired_.size();
}

Result<void> Recorder::flush() {
  {
    std::lock_guard lock(fired_mutex_);
    if (fired_error_ != 0) return fail(system_error("write", fired_path_, fired_error_));
  }
  if (trace_) SAVEGATE_CHECK(trace_->flush());
  return {};
}

}  // namespace savegate::fusefs
