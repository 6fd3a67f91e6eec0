// What a command line says, checked as text before anything is done with it: a variable that was
// left unset in a script must not become a run of something else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::cli {

// Cuts off the first `--`; all after it is the command under test. None where there is no `--`.
std::optional<std::vector<std::string>> split_command(int& argc, char** argv);

// What a subcommand was told of the save path under test.
struct SaidOfSubject {
  std::string subcommand;     // "run"
  bool takes_subject = true;  // it has an option --subject
  bool subject_said = false;
  std::optional<std::vector<std::string>> command;  // as split_command() found it
};
Result<void> check_subject_words(const SaidOfSubject& said);

// `--backing=` would take the next word for its value.
Result<void> check_assignments(int argc, const char* const* argv);

// "" where the text is a number in the range, else what is wrong. A whole number is digits alone:
// neither a sign nor more than the type holds is made another number.
std::string whole_number_error(const std::string& text, std::uint64_t least, std::uint64_t most);
std::string number_error(const std::string& text, double least, double most);

}  // namespace savegate::cli
