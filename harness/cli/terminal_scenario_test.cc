// What a run looks like on a terminal, and in a file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    // A second in which nothing is printed, but for the view.
    std::ofstream(savegate_.folder() + "/slow.toml")
        << "name = \"slow\"\nsummary = \"For a test.\"\n[[scenario]]\nname = \"one\"\n"
           "summary = \"One save.\"\n[[scenario.life]]\nuntil = \"save 1\"\n"
           "rules = [{ match = { op = \"rename\", rank = 1, once = true }, action = { delay = "
           "\"3s\" } }]\n";
  }
  std::string words(const std::string& more) {
    return "run " + savegate_.folder() + "/slow.toml --store " + savegate_.store() + more;
  }

  // The program on a terminal of its own; `on_output` sees all so far and may type.
  Ran on_terminal(const std::string& arguments,
                  const std::function<void(int terminal, const std::string&)>& on_output) {
    Ran ran;
    int terminal = -1;
    winsize size{.ws_row = 24, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", ("exec " + savegate_.bin() + "/savegate " + arguments).c_str(),
            nullptr);
      _exit(127);
    }
    EXPECT_EQ(tcgetattr(terminal, &before_), 0);
    char buffer[4096];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;) {
      ran.output.append(buffer, static_cast<std::size_t>(got));
      on_output(terminal, ran.output);
    }
    EXPECT_EQ(tcgetattr(terminal, &after_), 0);
    int status = 0;
    waitpid(child, &status, 0);
    close(terminal);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ran;
  }

  SavegateProgram savegate_;
  termios before_{};
  termios after_{};
};

// What a terminal of 60 columns shows after all of it, for the sequences that the view uses.
std::string shown(const std::string& output) {
  std::vector<std::string> lines(1);
  std::size_t row = 0;
  std::size_t column = 0;
  for (std::size_t at = 0; at < output.size(); ++at) {
    if (output.compare(at, 2, "\x1b[") == 0) {
      std::size_t end = at + 2;
      while (end < output.size() && std::isalpha(static_cast<unsigned char>(output[end])) == 0)
        ++end;
      const int number = std::atoi(output.c_str() + at + 2);
      if (output[end] == 'A') row -= std::min(row, static_cast<std::size_t>(number));
      if (output[end] == 'J') {
        lines.resize(row + 1);
        lines[row].resize(std::min(column, lines[row].size()));
      }
      at = end;
    } else if (output[at] == '\n') {
      if (++row == lines.size()) lines.emplace_back();
    } else if (output[at] == '\r') {
      column = 0;
    } else {
      lines[row].resize(std::max(column + 1, lines[row].size()), ' ');
      lines[row][column++] = output[at];
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST_F(TerminalTest, TheViewShowsLifeRanksAndWhatIsWaitedForAndLeavesNothingBehind) {
  const Ran ran = on_terminal(words(""), [](int, const std::string&) {});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("slow/one  life 1 until save 1"));
  EXPECT_THAT(ran.output, HasSubstr("rank 0"));
  EXPECT_THAT(ran.output, HasSubstr("waiting for progress of any rank"));
  const std::string left = shown(ran.output);
  EXPECT_THAT(left, HasSubstr("slow/one  "));
  EXPECT_THAT(left, HasSubstr("1 run: 1 passed"));
  EXPECT_THAT(left, Not(HasSubstr("waiting for")));
  EXPECT_THAT(left, Not(HasSubstr("[0/1]")));
}

TEST_F(TerminalTest, CtrlCLeavesTheTerminalAsItWas) {
  bool typed = false;
  const Ran ran = on_terminal(words(""), [&](int terminal, const std::string& output) {
    if (typed || output.find("waiting for") == std::string::npos) return;
    typed = true;
    EXPECT_EQ(write(terminal, "\x03", 1), 1);
  });
  EXPECT_TRUE(typed);
  EXPECT_EQ(ran.status, 130) << ran.output;
  EXPECT_THAT(shown(ran.output), Not(HasSubstr("waiting for")));
  EXPECT_EQ(before_.c_lflag, after_.c_lflag);
  EXPECT_EQ(before_.c_oflag, after_.c_oflag);
  EXPECT_EQ(savegate_.processes_left(), "");
}

TEST_F(TerminalTest, ElsewhereItIsPlainLinesAndQuietMeansNone) {
  const Ran plain = savegate_.run(words(" --verbose"));
  EXPECT_EQ(plain.status, 0) << plain.output;
  EXPECT_THAT(plain.output, HasSubstr("slow/one: life 1 until save 1\n"));
  EXPECT_THAT(plain.output, HasSubstr("[0/1] "));
  EXPECT_THAT(plain.output, Not(HasSubstr("\x1b")));
  const Ran quiet = savegate_.run("run smoke/clean --quiet");
  EXPECT_EQ(quiet.output.substr(0, 6), "\n1 run") << quiet.output;
}

}  // namespace
}  // namespace savegate::cli
