#include "harness/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "harness/run/files.h"

namespace savegate::cli {
namespace {

constexpr std::uint64_t kLiveEveryNs = 100'000'000;
constexpr std::uint64_t kPlainEveryNs = 5'000'000'000;

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress()
    : terminal_(isatty(STDERR_FILENO) != 0), last_shown_ns_(harness::monotonic_ns()) {}
Progress::~Progress() { clear(); }

void Progress::expect(std::size_t scenarios) {
  const std::lock_guard lock(mutex_);
  expected_ += scenarios;
}

void Progress::begin(const std::string& scenario) {
  const std::lock_guard lock(mutex_);
  scenario_ = scenario;
  show("");
}

void Progress::life(const harness::LifeProgress& progress) {
  const std::lock_guard lock(mutex_);
  std::size_t running = 0;
  for (const harness::RankView& rank : progress.ranks) running += rank.running ? 1 : 0;
  show(fmt::format("life {}, {:.1f} s, {} of {} ranks running, {} faults fired", progress.life,
                   static_cast<double>(progress.elapsed_ns) / 1e9, running, progress.ranks.size(),
                   progress.fired));
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  ++ended_;
}

void Progress::print(const std::string& line) {
  const std::lock_guard lock(mutex_);
  clear();
  fmt::print("{}", line);
  std::fflush(stdout);
}

void Progress::show(const std::string& line) {
  const std::uint64_t now = harness::monotonic_ns();
  if (now - last_shown_ns_ < (terminal_ ? kLiveEveryNs : kPlainEveryNs)) return;
  last_shown_ns_ = now;
  std::string text = fmt::format("[{}/{}] {}", ended_ + 1, expected_, scenario_);
  if (!line.empty()) text += ": " + line;
  if (!terminal_) {
    fmt::print(stderr, "{}\n", text);
    return;
  }
  if (text.size() >= terminal_width()) text.resize(terminal_width() - 1);
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace savegate::cli
