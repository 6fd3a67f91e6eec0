// Pictures of a report: inline SVG with a title and a description, drawn in the page's colours.
#pragma once

#include <string>
#include <vector>

#include "reports/scene.h"

namespace savegate::reports {

inline constexpr int kRanksDrawn = 16;

// Ranks of one life over time. `id` is unique within the page.
std::string draw_timeline(const SceneLife& life, int world, const std::string& id);
std::string timeline_legend();

struct Bar {
  std::string label;
  double value = 0;
  std::string text;  // the value in words
};
std::string draw_bars(const std::vector<Bar>& bars, const std::string& title,
                      const std::string& id);

}  // namespace savegate::reports
