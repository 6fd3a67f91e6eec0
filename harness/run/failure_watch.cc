#include "harness/run/failure_watch.h"

#include <fcntl.h>

#include <algorithm>

#include "faults/fired.h"
#include "harness/event.h"
#include "harness/run/files.h"

namespace savegate::harness {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::string events_file(const std::string& events_directory, int rank) {
  return events_directory + "/rank-" + std::to_string(rank) + ".jsonl";
}

std::vector<std::string> LineTail::read_new() {
  // Not waiting: a rank may have put a FIFO in the file's place.
  if (!fd_) fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::vector<std::string> lines;
  if (!fd_) return lines;
  char buffer[65536];
  ssize_t got = 0;
  while ((got = ::read(fd_.get(), buffer, sizeof buffer)) > 0) {
    std::string_view rest(buffer, static_cast<std::size_t>(got));
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      lines.push_back(std::move(partial_));
      lines.back() += rest.substr(0, end);
      partial_.clear();
      rest.remove_prefix(end + 1);
    }
    partial_ += rest;
  }
  return lines;
}

FailureWatch::FailureWatch(const std::string& events_directory, int world,
                           const std::string& fired_path)
    : started_ns_(monotonic_ns()), fired_tail_(fired_path) {
  for (int rank = 0; rank < world; ++rank)
    events_.emplace_back(events_file(events_directory, rank));
  last_lines_.resize(events_.size());
}

bool FailureWatch::read_new() {
  bool any = false;
  for (const std::string& line : fired_tail_.read_new()) {
    any = true;
    read_fired_line(line);
  }
  for (std::size_t rank = 0; rank < events_.size(); ++rank) {
    for (std::string& line : events_[rank].read_new()) {
      any = true;
      read_event_line(line);
      if (listener_) listener_(static_cast<int>(rank), line);
      last_lines_[rank] = std::move(line);
    }
  }
  return any;
}

void FailureWatch::read_fired_line(const std::string& line) {
  ++fired_;
  begun_ = true;
  const auto record = faults::fired_from_json_line(line);
  if (!record) return;  // judged from the store, with the line quoted
  const bool kill = record->action.compare(0, 4, "kill") == 0;
  if (kill && ends_with(record->action, "job")) job_killed_ = true;
  if (kill && ends_with(record->action, "rank")) killed_ranks_.push_back(record->caller.rank);
  if (record->action.compare(0, 4, "hang") == 0) {
    held_ranks_[record->caller.rank] = record->rule;
    new_holds_.emplace_back(record->caller.rank, record->rule);
    keep_first(first_hold_ns_, record->time_ns);
  }
  if (kill || record->error != 0) keep_first(first_fault_ns_, record->time_ns);
}

void FailureWatch::read_event_line(const std::string& line) {
  begun_ = begun_ || !contains(line, "\"hello\"");
  if (!contains(line, "\"ok\":false") && !contains(line, "\"ok\": false")) return;
  const auto event = parse_event(line);
  if (event && !event->ok) keep_first(first_report_ns_, event->time_ns);
}

std::string FailureWatch::last_event(int rank) const {
  if (rank < 0 || static_cast<std::size_t>(rank) >= last_lines_.size()) return "";
  const auto event = parse_event(last_lines_[static_cast<std::size_t>(rank)]);
  if (!event) return "";
  std::string text(event_name(event->kind));
  if (!event->name.empty()) text += " " + event->name;
  if (event->step) text += ", step " + std::to_string(*event->step);
  return text;
}

bool FailureWatch::killed_by_rule(int rank) const {
  return job_killed_ ||
         std::find(killed_ranks_.begin(), killed_ranks_.end(), rank) != killed_ranks_.end();
}

// A subject with a wrong clock must not move a deadline out of this life.
void FailureWatch::keep_first(std::uint64_t& first, std::uint64_t time_ns) const {
  const std::uint64_t now = monotonic_ns();
  if (time_ns < started_ns_ || time_ns > now) time_ns = now;
  if (first == 0 || time_ns < first) first = time_ns;
}

std::string FailureWatch::held_by(int rank) const {
  const auto found = held_ranks_.find(rank);
  return found == held_ranks_.end() ? std::string() : found->second;
}

}  // namespace savegate::harness
