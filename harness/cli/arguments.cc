#include "harness/cli/arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace savegate::cli {

std::optional<std::vector<std::string>> split_command(int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    std::vector<std::string> command(argv + i + 1, argv + argc);
    argc = i;
    return command;
  }
  return std::nullopt;
}

Result<void> check_subject_words(const SaidOfSubject& said) {
  if (!said.command) return {};
  if (!said.takes_subject)
    return fail(invalid(
        fmt::format("`savegate {}` runs no save path: leave out `--` and what comes after it",
                    said.subcommand)));
  if (said.command->empty() || said.command->front().empty())
    return fail(
        invalid("no program after `--` (an unset variable?): say the command under test, or "
                "leave `--` out for what --subject names"));
  if (said.subject_said)
    return fail(invalid("--subject and a command after `--` are two save paths: say one"));
  return {};
}

Result<void> check_assignments(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      return fail(invalid(fmt::format(
          "`{}` has no value (an unset variable?): say one, or leave the option out", word)));
  }
  return {};
}

std::string whole_number_error(const std::string& text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && value >= least && value <= most) return "";
  return fmt::format("`{}` is no whole number from {} to {}", text, least, most);
}

std::string number_error(const std::string& text, double least, double most) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec == std::errc() && parsed.ptr == end && value >= least && value <= most) return "";
  return fmt::format("`{}` is no number from {} to {}", text, least, most);
}

}  // namespace savegate::cli
