#include "reports/history_file.h"

#include <gmock/gmock.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace savegate::reports {
namespace {

using testing::HasSubstr;

class HistoryFileTest : public testing::Test {
 protected:
  HistoryFileTest() {
    folder_ = std::filesystem::temp_directory_path().string() + "/savegate-history-XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~HistoryFileTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/history.db"; }
  HistoryFile open() const { return HistoryFile::open(path()).value(); }

  static HistoryRow row(const std::string& run, Outcome outcome = Outcome::kPass) {
    HistoryRow made;
    made.run = run;
    made.ended = 1'800'000'000;
    made.about = {.scenario = "smoke/one", .subject = "mine", .world = 2, .device = "cpu"};
    made.outcome = outcome;
    made.failed = {"C1", "F6"};
    made.sentence = "it's \"so\"";
    made.seed = UINT64_MAX;
    made.bound_to = "abc";
    return made;
  }

  std::string folder_;
};

TEST_F(HistoryFileTest, RowsComeBackWholeAndNewestFirst) {
  HistoryRow timed = row("b", Outcome::kFail);
  timed.seconds = 1.25;
  ASSERT_TRUE(open().add({row("a"), timed}));
  EXPECT_EQ(open().recent(timed.about, 20).value(), (std::vector<HistoryRow>{timed, row("a")}));
  EXPECT_EQ(open().recent(timed.about, 1).value().size(), 1u);
}

TEST_F(HistoryFileTest, OtherCircumstancesAreAnotherHistory) {
  ASSERT_TRUE(open().add({row("a")}));
  About other = row("a").about;
  other.world = 4;
  EXPECT_TRUE(open().recent(other, 20).value().empty());
}

TEST_F(HistoryFileTest, TheLatestOfEachIsTheLastThatWasNotSkipped) {
  ASSERT_TRUE(open().add({row("a", Outcome::kFail), row("b"), row("c", Outcome::kSkip)}));
  const auto latest = open().latest().value();
  ASSERT_EQ(latest.size(), 1u);
  EXPECT_EQ(latest.begin()->second.run, "b");
}

TEST_F(HistoryFileTest, RunsSideBySideLoseNothing) {
  constexpr int kRuns = 8;
  std::vector<std::jthread> runs;
  runs.reserve(kRuns);
  for (int i = 0; i < kRuns; ++i)
    runs.emplace_back([&] {
      const std::vector<HistoryRow> rows(10, row("r"));
      EXPECT_TRUE(HistoryFile::open(path()).and_then(
          [&](HistoryFile history) { return history.add(rows); }));
    });
  runs.clear();
  EXPECT_EQ(open().recent(row("").about, 1000).value().size(), 10u * kRuns);
}

TEST_F(HistoryFileTest, AFileThatIsNoDatabaseIsNamedAndLeftAsItIs) {
  const std::string text(5000, 'x');
  std::ofstream(path()) << text;
  const auto opened = HistoryFile::open(path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kUnavailable);
  EXPECT_THAT(opened.error().to_string(), HasSubstr("not a database"));
  EXPECT_THAT(opened.error().to_string(), HasSubstr("move it away"));
  EXPECT_EQ(std::filesystem::file_size(path()), text.size());
}

TEST_F(HistoryFileTest, ALayoutOfTheFutureIsRefused) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "PRAGMA user_version = 7", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  const auto opened = HistoryFile::open(path());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().to_string(), HasSubstr("version 7, and this savegate knows 1"));
}

}  // namespace
}  // namespace savegate::reports
