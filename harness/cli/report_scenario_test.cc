// What a real run leaves for people to look at: the report in a browser, the trace by its format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "harness/cli/savegate_program.h"
#include "reports/trace_event_testing.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What a browser shows of a page: how long it takes to open, of three times, in milliseconds; the
// anchors that lead nowhere. It says one line on the console, so that its being heard is seen.
constexpr const char* kBrowserPage = R"html(<!doctype html><title>open</title><pre id="said"></pre>
<script>
console.log('the page that looks');
const loads = [];
let began = performance.now();
function opened(frame) {
  const page = frame.contentDocument;
  const height = page.documentElement.scrollHeight;
  loads.push(performance.now() - began);
  const dead = [...page.querySelectorAll('a[href^="#"]')].map(link => link.hash.slice(1))
      .filter(id => !page.getElementById(id));
  const articles = page.querySelectorAll('article').length;
  document.getElementById('said').textContent = JSON.stringify({loads, height, dead, articles});
  if (loads.length == 3) return;
  began = performance.now();
  frame.contentWindow.location.reload();
}
</script>
<iframe src="report.html" onload="opened(this)" width="1400" height="900"></iframe>
)html";

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  void run_a_failure() {
    std::string toml =
        text_of_file(SAVEGATE_SOURCE_DIR "/scenarios/subjects/reference/subject.toml");
    const std::string last = "\"{step_memory}\"";
    toml.insert(toml.find(last) + last.size(), ", \"--break\", \"ignore-fsync-error\"");
    fs::create_directory(savegate_.folder() + "/subject");
    const std::string subject = savegate_.folder() + "/subject/subject.toml";
    std::ofstream(subject) << toml;
    const Ran ran = savegate_.run("run smoke/late-eio-at-fsync --subject " + subject);
    ASSERT_EQ(ran.status, 1) << ran.output;
    run_ = fs::canonical(savegate_.store() + "/latest").string();
  }

  SavegateProgram savegate_;
  std::string run_;
};

TEST_F(ReportTest, EveryFileThatItLinksIsThereAndTheTraceKeepsToItsFormat) {
  ASSERT_NO_FATAL_FAILURE(run_a_failure());
  const std::string page = text_of_file(run_ + "/report.html");
  const std::regex link("href=\"\\./([^\"#]*)\"");
  int links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links)
    EXPECT_TRUE(fs::exists(run_ + "/" + (*at)[1].str())) << (*at)[1];
  EXPECT_GT(links, 10);
  const auto trace =
      nlohmann::json::parse(text_of_file(run_ + "/late-eio-at-fsync/trace.perfetto.json"));
  EXPECT_GT(trace["traceEvents"].size(), 100U);
  EXPECT_EQ(reports::trace_event_misfit(trace), "");
}

TEST_F(ReportTest, AThousandFailuresOpenInABrowserInUnderASecondWithoutAComplaint) {
  if (savegate_.shell("command -v chromium").status != 0)
    GTEST_SKIP() << "there is no chromium on this machine";
  ASSERT_NO_FATAL_FAILURE(run_a_failure());
  auto record = nlohmann::json::parse(text_of_file(run_ + "/result.json"));
  const nlohmann::json one = record["scenarios"][0];
  for (int i = 1; i < 1000; ++i) {
    nlohmann::json another = one;
    another["scenario"] = "late-eio-at-fsync-" + std::to_string(i);
    record["scenarios"].push_back(std::move(another));
  }
  std::ofstream(run_ + "/result.json") << record;
  ASSERT_EQ(savegate_.shell(savegate_.bin() + "/savegate report " + run_).status, 0);
  EXPECT_LT(fs::file_size(run_ + "/report.html"), 5U << 20);

  std::ofstream(run_ + "/looked-at.html") << kBrowserPage;
  const Ran ran = savegate_.shell(
      "timeout 120 chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files "
      "--user-data-dir=" +
      savegate_.folder() + "/profile --enable-logging=stderr --v=0 --dump-dom file://" + run_ +
      "/looked-at.html");
  ASSERT_EQ(ran.status, 0) << ran.output;
  std::smatch said;
  ASSERT_TRUE(std::regex_search(ran.output, said, std::regex("id=\"said\">([^<]+)"))) << ran.output;
  const auto seen = nlohmann::json::parse(said[1].str());
  EXPECT_EQ(seen["articles"], 1000);
  EXPECT_THAT(seen["dead"], testing::IsEmpty());
  const auto loads = seen["loads"].get<std::vector<double>>();
  const double quickest = *std::min_element(loads.begin(), loads.end());
  std::cout << "opened in " << quickest << " ms, the quickest of " << loads.size() << "\n";
  EXPECT_LT(quickest, 1000);

  std::istringstream lines(ran.output);
  std::vector<std::string> console;
  for (std::string line; std::getline(lines, line);)
    if (line.find("CONSOLE") != std::string::npos) console.push_back(line);
  EXPECT_THAT(console, testing::ElementsAre(HasSubstr("the page that looks")));
}

}  // namespace
}  // namespace savegate::cli
