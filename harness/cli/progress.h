// Progress: on a terminal a live view below what was printed, redrawn in place; elsewhere a plain
// line whenever nothing was printed for two seconds, then ever less often.
//
// Everything that the program prints meanwhile goes through print(), so that the two never mix. The
// view changes no mode of the terminal: whatever ends the program, there is nothing to restore but
// the view's own lines, which rest() and the end take away. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "harness/cli/live_view.h"
#include "harness/cli/options.h"

namespace savegate::cli {

class Progress {
 public:
  explicit Progress(Verbosity verbosity);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void expect(std::size_t scenarios);
  void begin(const std::string& scenario);
  void life(const std::string& scenario, const harness::LifeProgress& progress);
  void end(const std::string& scenario);
  void failed();  // one more did not pass
  // Lines that stay, such as a verdict; the view comes back below them.
  void print(const std::string& lines);
  void print_if_verbose(const std::string& lines);
  void rest();  // takes the view away until the next news

 private:
  void show();
  void draw(std::uint64_t now);
  void clear();
  void put(const std::string& lines);

  std::mutex mutex_;  // guards all below
  Verbosity verbosity_;
  bool terminal_;
  LiveState state_;
  std::size_t drawn_ = 0;  // lines of the view that are on the terminal
  std::uint64_t started_ns_;
  std::uint64_t last_shown_ns_;
  std::uint64_t plain_wait_ns_;
};

}  // namespace savegate::cli
