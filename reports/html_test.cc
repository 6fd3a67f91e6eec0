#include "reports/html.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "reports/example_run.h"
#include "reports/html_text.h"

namespace savegate::reports {
namespace {

constexpr const char* kHostile = "<script>alert(1)</script>\"'&\xff\x01 onload=\"x\"";

Scene example_scene(const std::string& text) {
  SceneLife life{.number = 1, .begin_ns = 1000, .end_ns = 9000};
  life.slices = {{.kind = SliceKind::kSave,
                  .rank = 0,
                  .begin_ns = 1000,
                  .end_ns = 8000,
                  .name = text,
                  .detail = text,
                  .failed = true},
                 {.kind = SliceKind::kWrite,
                  .rank = 1,
                  .begin_ns = 2000,
                  .end_ns = 3000,
                  .name = text,
                  .detail = text,
                  .failed = true}};
  life.instants = {
      {.kind = InstantKind::kKill, .rank = 1, .time_ns = 3000, .name = text, .detail = text}};
  life.memory = {{0, text, text, std::nullopt}};
  life.times = {{0, text, 0.5}};
  life.fired = {text};
  Scene scene;
  scene.world = 2;
  scene.lives = {life};
  scene.first_file_system_error = text;
  scene.first_subject_error = text;
  scene.differences = {{1, 0, text, text, text, text}};
  return scene;
}

HtmlInput input_of(const RunRecord& run, const std::string& text) {
  HtmlInput input;
  for (const ScenarioResult& result : run.scenarios)
    input.scenes[result.directory] = {example_scene(text), {text}};
  input.measured = run.scenarios.front().directory;
  return input;
}

std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.insert((*at)[1]);
  return found;
}

std::size_t occurrences(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// Everything that a subject, a path or a user can name is put into every place that shows it.
TEST(HtmlTest, HostileTextIsNeverMarkup) {
  RunRecord run = example_run({Outcome::kFail});
  ScenarioResult& result = run.scenarios.front();
  for (std::string* text : {&result.scenario, &result.point, &result.summary, &result.directory,
                            &result.repeat, &result.verdicts[0].requirement,
                            &result.verdicts[0].summary, &result.verdicts[0].evidence[0],
                            &result.lives[0].outcome, &run.command, &run.subject, &run.device})
    *text = kHostile;
  run.id = kHostile;
  run.provenance[kHostile] = kHostile;
  HtmlInput input = input_of(run, kHostile);
  input.rules[kHostile] = kHostile;
  const std::string page = render_html(run, input);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("\" onload="), std::string::npos);
  EXPECT_EQ(page.find("onload=\""), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  EXPECT_GT(occurrences(page, "&lt;script&gt;"), 20U);
}

TEST(HtmlTest, TextThatTurnsTheDirectionOfWritingIsReplaced) {
  EXPECT_EQ(html("a\xE2\x80\xAE"
                 "b"),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(HtmlTest, LinksAreRelativeAndSafe) {
  EXPECT_EQ(link_path("a b/#?\"javascript:"), "a%20b/%23%3F%22javascript%3A");
}

TEST(HtmlTest, TheSameRunGivesTheSameBytes) {
  const RunRecord run = example_run({Outcome::kFail, Outcome::kPass});
  EXPECT_EQ(render_html(run, input_of(run, "x")), render_html(run, input_of(run, "x")));
}

TEST(HtmlTest, AnchorsResolveAndIdsAreUnique) {
  const RunRecord run = example_run({Outcome::kFail, Outcome::kPass, Outcome::kInvalid});
  const std::string page = render_html(run, input_of(run, "x"));
  const std::set<std::string> ids = matches(page, " id=\"([^\"]*)\"");
  for (const std::string& target : matches(page, "href=\"#([^\"]*)\""))
    EXPECT_TRUE(ids.contains(target)) << target;
  for (const std::string& id : ids) EXPECT_EQ(occurrences(page, " id=\"" + id + "\""), 1U) << id;
}

TEST(HtmlTest, NothingIsLoadedFromElsewhere) {
  const RunRecord run = example_run({Outcome::kFail});
  const std::string page = render_html(run, input_of(run, "x"));
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find("url("), std::string::npos);
}

TEST(HtmlTest, TheVerdictIsAWordAndASignNotAColour) {
  const std::string page = render_html(example_run({Outcome::kFail}), {});
  EXPECT_NE(page.find("<p class=\"verdict\"><b class=\"o fail\"><i aria-hidden=\"true\">✗</i>FAIL"),
            std::string::npos);
}

TEST(HtmlTest, WhatWasNotMeasuredIsNotObtained) {
  RunRecord run = example_run({Outcome::kPass});
  EXPECT_NE(render_html(run, input_of(run, "x")).find("not obtained"), std::string::npos);
}

TEST(HtmlTest, AThousandFailuresWithPicturesStayBelowFiveMebibytes) {
  RunRecord run = example_run(std::vector<Outcome>(1000, Outcome::kFail));
  HtmlInput input = input_of(run, std::string(2000, 'x'));
  const std::string page = render_html(run, input);
  EXPECT_LT(page.size(), 5U << 20);
  EXPECT_EQ(occurrences(page, "command that repeats it"), 1000U);
  EXPECT_NE(page.find("the page would become too large"), std::string::npos);
}

}  // namespace
}  // namespace savegate::reports
