#include "harness/cli/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace savegate::cli {
namespace {

using harness::LifeProgress;
using harness::RankView;

constexpr std::size_t kRanksNamed = 4;  // in the same state; more are counted

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

std::string heading(const LiveState& state) {
  std::string line =
      fmt::format("[{}/{}] {:.0f} s", state.ended, state.expected, seconds(state.elapsed_ns));
  if (state.did_not_pass > 0) line += fmt::format(", {} did not pass", state.did_not_pass);
  return line;
}

std::string life_line(const std::string& scenario, const LifeProgress& life) {
  if (life.life == 0) return scenario;
  return fmt::format("{}  life {} until {}, {:.1f} s, {} fired", scenario, life.life, life.until,
                     seconds(life.elapsed_ns), life.fired);
}

// Ranks in the same state together: "rank 0, 2 update, step 3 · 61 ranks starting".
std::string ranks_line(const std::vector<RankView>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> states;
  for (const RankView& rank : ranks) {
    auto same = std::find_if(states.begin(), states.end(),
                             [&](const auto& known) { return known.first == rank.state; });
    if (same == states.end()) same = states.insert(states.end(), {rank.state, {}});
    same->second.push_back(rank.rank);
  }
  std::string line;
  for (const auto& [state, of] : states) {
    if (!line.empty()) line += " · ";
    line += of.size() > kRanksNamed ? fmt::format("{} ranks {}", of.size(), state)
                                    : fmt::format("rank {} {}", fmt::join(of, ", "), state);
  }
  return line;
}

// Nothing in a name moves the cursor, and no character is cut in two.
std::string fitted(std::string line, std::size_t columns) {
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  std::size_t width = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if ((static_cast<unsigned char>(line[at]) & 0xc0U) == 0x80) continue;  // within a character
    if (++width > columns) {
      line.resize(at);
      break;
    }
  }
  return line;
}

}  // namespace

std::vector<std::string> live_lines(const LiveState& state, std::size_t columns, std::size_t rows) {
  constexpr std::size_t kOfScenario = 3;
  std::vector<std::string> lines = {heading(state)};
  std::size_t shown = 0;
  for (const auto& [scenario, life] : state.running) {
    // The last row stays for what has no room.
    if (lines.size() + kOfScenario + 1 > rows) break;
    ++shown;
    lines.push_back(life_line(scenario, life));
    if (life.life == 0) continue;
    lines.push_back("  " + ranks_line(life.ranks));
    lines.push_back("  waiting for " + life.waits_for);
  }
  if (shown < state.running.size() && lines.size() < rows)
    lines.push_back(
        fmt::format("and {} more scenarios at the same time", state.running.size() - shown));
  for (std::string& line : lines) line = fitted(std::move(line), columns);
  return lines;
}

std::string live_line(const LiveState& state) {
  std::string line = heading(state);
  for (const auto& [scenario, life] : state.running) {
    line += "; " + life_line(scenario, life);
    if (life.life != 0) line += ", waiting for " + life.waits_for;
  }
  return fitted(line, line.size());
}

}  // namespace savegate::cli
