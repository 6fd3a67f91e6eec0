// The report of a run as one HTML file that needs nothing else: no network, no script.
//
//   HtmlInput input;
//   input.scenes["enospc/marker"] = …;          // of what did not pass
//   write("report.html", render_html(run, input));
//
// The same input gives the same bytes. All that is not savegate's own is escaped. A page stays
// below 5 MiB: what passed is a line, and pictures are left out, by name, once kPictureBytes are
// spent.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/history.h"
#include "reports/result.h"
#include "reports/scene.h"

namespace savegate::reports {

inline constexpr std::size_t kPictureBytes = 3U << 20;

struct StoredScene {
  Scene scene;
  std::vector<std::string> files;  // of the evidence, relative to the report
};

struct HtmlInput {
  std::map<std::string, std::string> rules;   // requirement → its rule in one line
  std::map<std::string, StoredScene> scenes;  // by ScenarioResult::directory
  std::string measured;                       // directory of the one whose phases are plotted
  std::map<std::string, std::vector<HistoryRow>> history;  // by lasting_name(), newest first
};

std::string render_html(const RunRecord& run, const HtmlInput& input);

}  // namespace savegate::reports
