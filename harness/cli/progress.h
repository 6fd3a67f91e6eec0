// Progress on stderr: on a terminal one live line, elsewhere a plain line every few seconds.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "harness/run/supervisor.h"

namespace savegate::cli {

class Progress {
 public:
  Progress();
  ~Progress();  // takes the live line away
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void expect(std::size_t scenarios);
  void begin(const std::string& scenario);
  void life(const harness::LifeProgress& progress);
  void end();  // of a scenario
  // A line that stays, such as a verdict; the live line comes back below it.
  void print(const std::string& line);

 private:
  void show(const std::string& line);
  void clear();

  std::mutex mutex_;  // guards all below
  bool terminal_;
  bool shown_ = false;
  std::size_t expected_ = 0;
  std::size_t ended_ = 0;
  std::string scenario_;
  std::uint64_t last_shown_ns_ = 0;
};

}  // namespace savegate::cli
