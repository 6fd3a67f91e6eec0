#include "harness/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "harness/run/files.h"

namespace savegate::cli {
namespace {

constexpr std::uint64_t kLiveEveryNs = 100'000'000;
constexpr std::uint64_t kPlainAfterNs = 2'000'000'000;
constexpr std::uint64_t kPlainAtMostNs = 30'000'000'000;
constexpr std::size_t kMostRows = 16;  // of a large terminal, where much runs at the same time

winsize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    size = {.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  return size;
}

}  // namespace

Progress::Progress(Verbosity verbosity)
    : verbosity_(verbosity),
      terminal_(isatty(STDERR_FILENO) != 0),
      started_ns_(harness::monotonic_ns()),
      last_shown_ns_(started_ns_),
      plain_wait_ns_(kPlainAfterNs) {}
Progress::~Progress() { clear(); }

void Progress::expect(std::size_t scenarios) {
  const std::lock_guard lock(mutex_);
  state_.expected += scenarios;
}

void Progress::begin(const std::string& scenario) {
  const std::lock_guard lock(mutex_);
  state_.running[scenario] = {};
  show();
}

void Progress::life(const std::string& scenario, const harness::LifeProgress& progress) {
  const std::lock_guard lock(mutex_);
  harness::LifeProgress& known = state_.running[scenario];
  if (verbosity_ == Verbosity::kVerbose && known.life != progress.life)
    put(fmt::format("{}: life {} until {}\n", scenario, progress.life, progress.until));
  known = progress;
  show();
}

void Progress::end(const std::string& scenario) {
  const std::lock_guard lock(mutex_);
  state_.running.erase(scenario);
  ++state_.ended;
}

void Progress::failed() {
  const std::lock_guard lock(mutex_);
  ++state_.did_not_pass;
}

void Progress::print(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  if (verbosity_ != Verbosity::kQuiet) put(lines);
}

void Progress::print_if_verbose(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  if (verbosity_ == Verbosity::kVerbose) put(lines);
}

void Progress::rest() {
  const std::lock_guard lock(mutex_);
  clear();
}

void Progress::put(const std::string& lines) {
  clear();
  fmt::print("{}", lines);
  std::fflush(stdout);
  if (terminal_) return;
  last_shown_ns_ = harness::monotonic_ns();
  plain_wait_ns_ = kPlainAfterNs;
}

void Progress::show() {
  if (verbosity_ == Verbosity::kQuiet) return;
  const std::uint64_t now = harness::monotonic_ns();
  if (now - last_shown_ns_ < (terminal_ ? kLiveEveryNs : plain_wait_ns_)) return;
  last_shown_ns_ = now;
  state_.elapsed_ns = now - started_ns_;
  if (terminal_) {
    draw(now);
    return;
  }
  plain_wait_ns_ = std::min(2 * plain_wait_ns_, kPlainAtMostNs);
  fmt::print(stderr, "{}\n", live_line(state_));
}

void Progress::draw(std::uint64_t now) {
  last_shown_ns_ = now;
  const winsize size = terminal_size();
  // One column and one row stay free, so that nothing wraps or scrolls.
  const auto lines =
      live_lines(state_, size.ws_col - 1U, std::min<std::size_t>(size.ws_row - 1U, kMostRows));
  clear();
  for (const std::string& line : lines) fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  drawn_ = lines.size();
}

void Progress::clear() {
  if (drawn_ > 0) fmt::print(stderr, "\r\x1b[{}A\x1b[J", drawn_);
  std::fflush(stderr);
  drawn_ = 0;
}

}  // namespace savegate::cli
