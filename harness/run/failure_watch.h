// Follows the event files and fired.jsonl of a life while it runs: is there progress, and when was
// the first failure.
//
// It reads only what was appended since the last look, and parses only lines that can tell of a
// failure; the whole of the evidence is parsed later, from the store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/unique_fd.h"

namespace savegate::harness {

// New whole lines of a file that others append to. The file may not exist yet.
class LineTail {
 public:
  explicit LineTail(std::string path) : path_(std::move(path)) {}
  std::vector<std::string> read_new();

 private:
  std::string path_;
  UniqueFd fd_;
  std::string partial_;
};

class FailureWatch {
 public:
  FailureWatch(const std::string& events_directory, int world, const std::string& fired_path);
  bool read_new();  // something was appended
  // Every line of events is shown to this too.
  void listen(std::function<void(int rank, const std::string& line)> listener) {
    listener_ = std::move(listener);
  }

  std::uint64_t first_fault_ns() const {
    return first_fault_ns_;
  }  // a rule gave an error or killed
  std::uint64_t first_report_ns() const { return first_report_ns_; }  // a rank said ok = false
  std::uint64_t fired() const { return fired_; }
  // A rank said more than hello, or a rule fired.
  bool begun() const { return begun_; }
  // What the rank said last: "save_begin, step 2"; "" while it said nothing.
  std::string last_event(int rank) const;
  // A kill rule acted on the rank (or on the whole job).
  bool killed_by_rule(int rank) const;
  // The rule that holds an operation of the rank, "" for none; and since when the first is held.
  std::string held_by(int rank) const;
  // Ranks and rules of the holds since this was last asked.
  std::vector<std::pair<int, std::string>> take_holds() { return std::exchange(new_holds_, {}); }
  std::uint64_t first_hold_ns() const { return first_hold_ns_; }

 private:
  void read_fired_line(const std::string& line);
  void read_event_line(const std::string& line);

  void keep_first(std::uint64_t& first, std::uint64_t time_ns) const;

  std::uint64_t started_ns_;
  std::vector<LineTail> events_;
  std::vector<std::string> last_lines_;  // as events_
  std::function<void(int rank, const std::string& line)> listener_;
  LineTail fired_tail_;
  std::uint64_t first_fault_ns_ = 0;
  std::uint64_t first_report_ns_ = 0;
  std::uint64_t fired_ = 0;
  bool begun_ = false;
  bool job_killed_ = false;
  std::vector<int> killed_ranks_;
  std::uint64_t first_hold_ns_ = 0;
  std::map<int, std::string> held_ranks_;
  std::vector<std::pair<int, std::string>> new_holds_;
};

std::string events_file(const std::string& events_directory, int rank);  // …/rank-0.jsonl

}  // namespace savegate::harness
