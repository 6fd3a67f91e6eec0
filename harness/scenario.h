// Scenarios and suites: lives, faults and kills, and what must hold. docs/scenarios.md is the
// reference of the TOML.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "faults/plan.h"
#include "faults/status.h"

namespace savegate::harness {

enum class Outcome : std::uint8_t {
  kComplete,        // every rank reached `until`, said done and left with exit status 0
  kFailTogether,    // a save failed: every rank left it with an error within `within`
  kRefuseTogether,  // the load was refused by every rank within `within`, before any step
  kKilled,          // a kill fired; the survivors left with an error, or were done, within `within`
  // A `hang` rule holds a rank's operation for good. The others leave with an error within
  // `within`; then the runner kills the held rank, which dies within a second
  // (RankProcess::ended_by says "runner: held by rule …", and from its SIGKILL to its end is
  // measured).
  kHeld,
  kAny,
};
std::string_view outcome_name(Outcome outcome);  // "fail-together"
std::optional<Outcome> outcome_from_name(std::string_view name);

// How a rank died. Whoever looks on the host for what a device refused, or in the program for what
// a scheduler's guard did, looks in the wrong place.
enum class Death : std::uint8_t {
  kGuard,           // SIGKILL by the guard of a memory limit, which counts page cache
  kCgroupOom,       // SIGKILL by the kernel: no message, no stack, but the cgroup counts it
  kGpuOutOfMemory,  // its device refused an allocation for good, and it left
  kKilled,          // by a kill rule
  kCrash,           // by a signal that nothing here sent
};
std::string_view death_name(Death death);  // "cgroup-oom"
std::optional<Death> death_from_name(std::string_view name);

struct Expect {
  Outcome outcome = Outcome::kComplete;
  std::uint64_t within_ns = 10'000'000'000;  // from the first failure (C1)
  // Allowed values of the resumed save point, "save 1" or "none"; empty: not stated (C10 judges).
  std::vector<std::string> resumed;
  std::string names;           // a word that the refusal must contain (R3)
  std::optional<Death> death;  // of one rank; survivors may end as they like
};

// A change made to the checkpoint tree between two lives.
struct Tamper {
  enum class Kind : std::uint8_t { kRemove, kEmpty, kTruncate, kFlip, kZero, kSwap, kForeign };
  Kind kind = Kind::kRemove;
  faults::Role role = faults::Role::kShard;
  int rank = 0;                   // which one, in the order of names, for roles with many files
  std::optional<int> other_rank;  // kSwap: exchanged with this one's file
  std::string path;               // glob instead of role and rank
  faults::Amount at;              // kTruncate: new size; kFlip, kZero: first byte
};
std::string_view tamper_name(Tamper::Kind kind);  // "truncate"
std::optional<Tamper::Kind> tamper_from_name(std::string_view name);

// Limits of each rank's process (setrlimit); what is not given stays as it is. A write beyond
// `file_size` fails with EFBIG and sends SIGXFSZ, as Linux does.
struct Limits {
  std::optional<std::uint64_t> open_files;
  std::optional<std::uint64_t> file_size;  // bytes
  bool any() const { return open_files || file_size; }
};

// What all ranks and the page cache of their files may hold together of the host.
struct MemoryLimit {
  enum class EnforcedBy : std::uint8_t {
    kNobody,  // the peak is judged
    kGuard,   // beyond limit × threshold the largest rank is killed, as a scheduler's guard does
    kKernel,  // a limit on the ranks' cgroup; the page cache of what they write is not counted
  };
  std::uint64_t bytes = 0;  // 0: there is none
  double threshold = 0.95;
  EnforcedBy enforced_by = EnforcedBy::kNobody;

  bool any() const { return bytes > 0; }
  bool kills() const { return any() && enforced_by != EnforcedBy::kNobody; }
  std::uint64_t allowed() const {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * threshold);
  }
};
std::string_view enforcer_name(MemoryLimit::EnforcedBy enforcer);  // "guard"
std::optional<MemoryLimit::EnforcedBy> enforcer_from_name(std::string_view name);

// Another process takes the memory of a rank's device when a `hang` rule holds that rank, then the
// rule lets it go.
struct Hog {
  std::string at;              // the rule's name; "" where there is no hog
  std::uint64_t headroom = 0;  // bytes that it leaves
};

struct LifeSpec {
  std::string until;                       // "save 2"
  faults::Plan plan;                       // rules and budgets of this life
  std::map<std::string, std::string> env;  // added to the ranks' environment
  Limits limits;
  MemoryLimit memory;
  std::string change;  // "data": what the subject is told to have changed (Subject::changes)
  std::vector<Tamper> tamper;  // done before the launch
  Hog hog;
  // The subject is to find out what another process could allocate, before and after each save.
  bool wake_probe = false;
  Expect expect;
  std::uint64_t no_progress_ns = 30'000'000'000;  // from the last progress of any rank
};

// Runs the scenario once for each point that one recorded clean life shows.
struct Generator {
  std::string at;  // "every operation" | "every write" | "every phase"
  std::string phase = "save 2";
  int life = 1;                    // which life gets the fault
  std::vector<int> ranks;          // empty: all
  std::vector<faults::When> when;  // kills only; kMiddle applies to data operations
  faults::Action action;
  bool pairs = false;  // two points at once, of different ranks; the later need not be reached
  std::optional<std::uint64_t>
      sample;  // at most so many points, chosen with the seed; coverage is reported
};

struct Scenario {
  std::string suite;
  std::string name;
  std::string summary;
  std::vector<std::string> requirements;
  int world = 2;
  std::vector<std::string> devices;  // with others it is not run; empty: with all
  std::uint64_t seed = 1;
  std::map<std::string, std::string> variables;  // over the subject's
  std::vector<LifeSpec> lives;
  std::optional<Generator> generator;
  std::string source;  // file:line
  std::string point;   // of a generated one: "rank 1 write step_2/… nth 3 middle"

  // Another process on a rank's device is part of it: it needs a device with memory of its own, and
  // nothing else may run beside it.
  bool has_neighbour() const;
  bool limits_memory() const;  // in any of its lives
};

struct Suite {
  std::string name;
  std::string summary;
  std::vector<Scenario> scenarios;
};
Result<Suite> load_suite(const std::string& toml_path);
Result<Suite> parse_suite(std::string_view toml, std::string_view source_name);

// The resolved scenario as it was run, for the store; judge reads it back.
std::string print_scenario(const Scenario& scenario);  // JSON
Result<Scenario> scenario_from_json(std::string_view json);
// A suite of this scenario alone, to be read and edited: parse_suite() gives the scenario back. Not
// of one with a generator, which is no single run.
std::string print_suite_of(const Scenario& scenario);  // TOML

}  // namespace savegate::harness
