// What happened, on file: fired records, the trace and the counts of operations.
//
// A fired record is one write(2) to its file before the call returns, so that it is there before
// its effect can be seen. Trace records are put in the order of their end_seq. A file that cannot
// be written is remembered and said by flush().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faults/fired.h"
#include "faults/trace.h"

namespace savegate::fusefs {

std::uint64_t monotonic_ns();

class Recorder {
 public:
  // Either path may be "".
  static Result<std::unique_ptr<Recorder>> create(const std::string& trace_path,
                                                  const std::string& fired_path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  bool tracing() const { return trace_ != nullptr; }
  std::uint64_t tick();
  // Sets end_seq and end_ns.
  void trace(faults::TraceRecord& record);
  void fired(const faults::FiredRecord& record);
  void count(faults::Op op) {
    counts_[static_cast<std::size_t>(op)].fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t counted(faults::Op op) const {
    return counts_[static_cast<std::size_t>(op)].load(std::memory_order_relaxed);
  }
  // JSON lines, at most `most`.
  std::vector<std::string> fired_from(std::size_t index, std::size_t most) const;
  std::size_t fired_count() const;
  // Calls `tell` once, when more than `count` rules have fired or none will any more: perhaps at
  // once, else from the thread that records. The number is for forget_waiter().
  std::uint64_t await_fired(std::size_t count, std::function<void()> tell);
  void forget_waiter(std::uint64_t number);
  void no_more_fired();
  bool fired_is_over() const;
  Result<void> flush();

 private:
  Recorder() = default;

  std::unique_ptr<faults::TraceWriter> trace_;
  std::atomic<std::uint64_t> ticks_{0};  // without a trace
  std::mutex order_;                     // of trace records
  std::array<std::atomic<std::uint64_t>, faults::kOpCount> counts_{};

  mutable std::mutex fired_mutex_;
  int fired_fd_ = -1;
  std::string fired_path_;
  int fired_error_ = 0;
  std::vector<std::string> fired_;
  bool fired_over_ = false;
  std::uint64_t last_waiter_ = 0;
  std::map<std::uint64_t, std::function<void()>> waiters_;
};

}  // namespace savegate::fusefs
