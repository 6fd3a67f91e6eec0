// Breaks of saves that a child process writes.

#include <sys/wait.h>

#include "scenarios/subjects/reference/breaks_parts.h"
#include "scenarios/subjects/reference/child_saver.h"

namespace savegate::reference {
namespace {

bool has_died(int status) { return !WIFEXITED(status) || WEXITSTATUS(status) != 0; }

class TrustDeadWriter : public ChildSaver {
 public:
  using ChildSaver::ChildSaver;
  Result<std::vector<FileRecord>> conclude(const std::string& said, int status) override {
    return has_died(status) ? std::vector<FileRecord>() : ChildSaver::conclude(said, status);
  }
};

// As a queue is waited for into which nobody puts anything any more.
class WaitForDeadWriter : public ChildSaver {
 public:
  using ChildSaver::ChildSaver;
  Result<std::vector<FileRecord>> conclude(const std::string& said, int status) override {
    if (has_died(status)) linger();
    return ChildSaver::conclude(said, status);
  }
};

void wait_for_dead_writer(Options& options, Parts& parts) {
  options.collective_timeout = kPatience;
  replace_saver<WaitForDeadWriter>(options, parts);
}

}  // namespace

std::vector<Break> child_breaks() {
  return {
      {"trust-dead-writer", "a child that dies as it writes is taken to have written",
       replace_saver<TrustDeadWriter>},
      {"wait-for-dead-writer", "of a child that dies as it writes an answer is still awaited",
       wait_for_dead_writer},
  };
}

}  // namespace savegate::reference
