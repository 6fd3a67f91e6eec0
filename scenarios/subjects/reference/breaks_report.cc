// Breaks of what the program says of itself.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

class MaskError : public Reporter {
 public:
  using Reporter::Reporter;
  using Reporter::shown;
  Status shown(const Status& /*error*/) override {
    return internal_error("unexpected pos 704 vs 598");
  }
};

class ExitZeroOnError : public Reporter {
 public:
  using Reporter::Reporter;
  int exit_status(int /*status*/) override { return 0; }
};

class FailSilently : public Reporter {
 public:
  using Reporter::Reporter;
  void hello() override {
    Reporter::hello();
    std::fprintf(stderr, "error: nothing to train on\n");
    std::_Exit(0);
  }
};

// The first life leaves its process id beside the checkpoints, the later ones claim to be it.
class ReusePid : public Reporter {
 public:
  using Reporter::Reporter;
  void hello() override {
    const worker::Environment& environment = worker_.environment();
    const std::string path =
        environment.directory + "/process-of-rank-" + std::to_string(environment.rank);
    std::int64_t pid = ::getpid();
    if (environment.life == 1) {
      std::ofstream(path) << pid;
    } else {
      std::ifstream(path) >> pid;
    }
    worker_.hello({{"savegate-reference", "1"}}, pid);
  }
};

class AnonymousItems : public Reporter {
 public:
  using Reporter::Reporter;
  using Reporter::shown;
  std::vector<worker::Item> shown(std::vector<worker::Item> items) override {
    for (worker::Item& item : items) {
      item.name.clear();
      item.global_shape.clear();
      item.local_shape.clear();
      item.offset.clear();
    }
    return items;
  }
};

class CompareNothing : public Reporter {
 public:
  using Reporter::Reporter;
  using Reporter::shown;
  std::vector<worker::Item> shown(std::vector<worker::Item> /*items*/) override { return {}; }
};

class GuessMemory : public Reporter {
 public:
  using Reporter::Reporter;
  worker::Memory memory(gpu::Backend& backend) override {
    worker::Memory facts = Reporter::memory(backend);
    facts["host_rss"] = 0;
    return facts;
  }
};

}  // namespace

std::vector<Break> report_breaks() {
  return {
      {"mask-error", "a secondary message is reported instead of the first error",
       replace_reporter<MaskError>},
      {"exit-zero-on-error", "a failure ends with exit status 0",
       replace_reporter<ExitZeroOnError>},
      {"fail-silently", "an error is printed, nothing is done, the exit status is 0",
       replace_reporter<FailSilently>},
      {"reuse-pid", "a resumed life reports the first one's process id",
       replace_reporter<ReusePid>},
      {"anonymous-items", "digests without name and shape", replace_reporter<AnonymousItems>},
      {"compare-nothing", "events without items", replace_reporter<CompareNothing>},
      {"guess-memory", "a memory fact of 0 bytes that nobody measured",
       replace_reporter<GuessMemory>},
  };
}

}  // namespace savegate::reference
