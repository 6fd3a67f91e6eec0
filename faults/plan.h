// Fault plans: rules that match operations and act on them, and budgets, as written in TOML.
//
//   seed = 7
//   [[rule]]
//   name   = "disk full under rank 1's second shard write"
//   match  = { op = "write", path = "**/shard-*", rank = 1, nth = 2 }
//   action = { errno = "ENOSPC", after = "64KiB" }
//
// parse_plan() and print_plan() round-trip: parse(print(p)) == p. An error names file, line,
// column, the offending key or word and the nearest valid one. docs/fault-plans.md is the
// reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "faults/features.h"
#include "faults/layout.h"
#include "faults/operation.h"
#include "faults/status.h"

namespace savegate::faults {

struct Range {  // half open: [from, to)
  std::uint64_t from = 0;
  std::uint64_t to = UINT64_MAX;
  bool operator==(const Range&) const = default;
};

// Time since the rank's own latest mark of that name; half open: [from, to).
struct Since {
  std::string mark;  // glob, as `phase` with op = "phase": "save 2", "save 2/commit"
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = UINT64_MAX;
  bool operator==(const Since&) const = default;
};

// What the count of `nth`, `every` and `after_bytes` is kept by (TOML: per = "rank", the default).
enum class CountPer : std::uint8_t { kRank, kFile, kRule };

// What a rule asks of an operation; all that is given must hold.
struct Match {
  std::uint64_t ops = 0;  // bit set of Op; 0: any but lookup, getattr, release and phase
  std::string path;       // glob, "" any
  std::optional<Role> role;
  std::optional<bool> temporary;
  std::vector<int> ranks;           // empty: any caller, also one without a rank
  std::vector<Relation> relations;  // TOML: process = "main" | "thread" | "child"; empty: any
  std::vector<int> lives;
  std::optional<int> attempt;
  std::string phase;  // glob; "save 2" also matches "save 2/commit"
  std::optional<Since> since;
  std::optional<Range> offset;         // the operation's first byte lies in it
  std::optional<Range> size;           // bytes asked
  std::optional<std::uint64_t> nth;    // 1 is the first matching operation
  std::optional<std::uint64_t> every;  // each so-manieth, from `nth` on if that is given
  CountPer per = CountPer::kRank;
  std::optional<std::uint64_t> after_bytes;  // once matching operations asked for so many bytes
  std::optional<double> probability;  // from (seed, rule, rank, the rank's own operation count)
  bool once = false;                  // at most one hit in a life
  bool operator==(const Match&) const = default;
};

// Bytes ("64KiB", 65536) or a share of the operation's bytes ("50%").
struct Amount {
  std::uint64_t bytes = 0;
  std::optional<double> share;  // 0…1
  bool operator==(const Amount&) const = default;
};

enum class When : std::uint8_t { kBefore, kMiddle, kAfter };
std::string_view when_name(When when);  // "middle"
enum class LateAt : std::uint8_t { kFsync, kClose, kWrite };
enum class KillTarget : std::uint8_t { kRank, kChild, kJob };
enum class Spread : std::uint8_t { kFixed, kUniform, kExponential, kNormal, kPareto };
// kStale: what the file held there before; kSwap: two blocks of the operation change places.
enum class Corruption : std::uint8_t { kFlip, kZero, kStale, kSwap };
// Written to the backing file, or returned to the reader.
enum class CorruptOn : std::uint8_t { kIn, kOut };

// TOML: errno = "ENOSPC", after = "64KiB", late = "fsync". With `late` the operation succeeds, and
// the next fsync, close or write of the file gets the error. With drop = true, at an fsync, what
// the file was given since its last fsync that succeeded is gone.
struct ErrnoAction {
  int error = 0;
  std::optional<Amount> after;
  std::optional<LateAt> late;
  bool drop = false;
  bool operator==(const ErrnoAction&) const = default;
};
// TOML: short = "50%"
struct ShortAction {
  Amount bytes;
  bool operator==(const ShortAction&) const = default;
};
// TOML: delay = "200ms", or drawn for each operation: delay = { uniform = ["10ms", "50ms"] },
// { exponential = "20ms" }, { normal = "20ms", deviation = "5ms" }, { pareto = "5ms", shape = 1.5 }
struct DelayAction {
  std::uint64_t nanoseconds =
      0;  // fixed; the least of kUniform and kPareto; the mean of the others
  Spread spread = Spread::kFixed;
  std::uint64_t to_ns = 0;         // of kUniform
  std::uint64_t deviation_ns = 0;  // of kNormal
  double shape = 1;                // of kPareto
  bool operator==(const DelayAction&) const = default;
};
// TOML: bandwidth = "100MiB/s"; of all operations of the rule together, as on one link
struct BandwidthAction {
  std::uint64_t bytes_per_second = 1;
  bool operator==(const BandwidthAction&) const = default;
};
// TOML: freeze = "2s", or freeze = true until released; target = "rank"
struct FreezeAction {
  std::optional<std::uint64_t> nanoseconds;
  KillTarget target = KillTarget::kRank;
  bool operator==(const FreezeAction&) const = default;
};
// TOML: hang = true; until released
struct HangAction {
  bool operator==(const HangAction&) const = default;
};
// TOML: kill = "SIGKILL", when = "middle", at = "50%", target = "rank"
struct KillAction {
  int signal = 9;
  When when = When::kBefore;
  Amount at;  // only for kMiddle
  KillTarget target = KillTarget::kRank;
  bool operator==(const KillAction&) const = default;
};
// TOML: corrupt = "flip", on = "in", at = "50%", length = 1; corrupt = "swap", with = "75%"
struct CorruptAction {
  Corruption kind = Corruption::kFlip;
  CorruptOn on = CorruptOn::kIn;
  Amount at;
  std::uint64_t length = 1;    // bytes
  std::optional<Amount> with;  // of kSwap: where the other block begins; not given: behind this one
  bool operator==(const CorruptAction&) const = default;
};
// TOML: lie = true; success, nothing done
struct LieAction {
  bool operator==(const LieAction&) const = default;
};
// TOML: missing = ["hard-link", "rename-over"]
struct MissingAction {
  Features features;
  bool operator==(const MissingAction&) const = default;
};
// TOML: race = "made"; another made or removed the name, or did the same rename, just before
enum class Race : std::uint8_t { kMade, kRemoved, kMoved };
struct RaceAction {
  Race kind = Race::kMade;
  bool operator==(const RaceAction&) const = default;
};
// TOML: timestamps = { skew = "-90s", granularity = "2s" }; as getattr reports them
struct TimestampsAction {
  std::int64_t skew_ns = 0;
  std::uint64_t granularity_ns = 1;  // rounded down to it, after the skew
  bool operator==(const TimestampsAction&) const = default;
};
// TOML: stale = ["name", "size"], for = "2s"; what others change is seen so late
enum class Aspect : std::uint8_t { kName, kSize, kListing, kAttributes, kNegative };
struct StaleAction {
  std::uint8_t aspects = 0;                // bit set of Aspect
  std::optional<std::uint64_t> window_ns;  // none: until the rule is released
  bool has(Aspect aspect) const { return (aspects & (1u << static_cast<unsigned>(aspect))) != 0; }
  bool operator==(const StaleAction&) const = default;
};
// TOML: lose = true; done, seen in this mount, and gone at its end unless the file was fsynced
struct LoseAction {
  bool operator==(const LoseAction&) const = default;
};
using Action = std::variant<ErrnoAction, ShortAction, DelayAction, HangAction, KillAction,
                            CorruptAction, LieAction, MissingAction, RaceAction, TimestampsAction,
                            StaleAction, BandwidthAction, FreezeAction, LoseAction>;
// "errno ENOSPC after 65536", "kill SIGKILL middle 50% rank"
std::string to_string(const Action& action);
// op = "write", rank = 1
std::string to_string(const Match& match);

struct Rule {
  std::string name;  // unique in the plan; made from match and action where not given
  Match match;
  Action action;
  bool required = true;  // H1: never fired ⇒ the scenario is INVALID
  bool operator==(const Rule&) const = default;
};

struct BudgetSpec {
  std::string name;
  std::string path = "**";              // glob; files that it covers share the budget
  std::vector<int> ranks;               // whose writes it counts and limits; empty: anybody's
  std::optional<std::uint64_t> limit;   // bytes
  std::optional<std::uint64_t> inodes;  // files, directories and the like
  int error = 28;                       // errno once exhausted (ENOSPC)
  std::uint32_t block = 4096;           // bytes, the unit of charge
  bool required = true;
  bool operator==(const BudgetSpec&) const = default;
};

struct Plan {
  std::uint64_t seed = 1;
  std::vector<Rule> rules;
  std::vector<BudgetSpec> budgets;
  bool operator==(const Plan&) const = default;
};

Result<Plan> parse_plan(std::string_view toml, std::string_view source_name);
std::string print_plan(const Plan& plan);
// The lines of one table of it, without its header.
std::string print_rule(const Rule& rule);
std::string print_budget(const BudgetSpec& budget);

// Parts of a plan that stand in another TOML file, as in a scenario's life:
//   rules   = [{ match = { rank = 1 }, action = { errno = "ENOSPC" } }]
//   budgets = [{ limit = "1GiB" }]
// Errors are kept by the reader. read_plan() reads both lists and the `preset` beside them
// (presets.h, whose rules come last), and sees to it that every name is there once: a name that was
// not given gets a number where needed, one given twice is an error.
class TomlReader;
Plan read_plan(TomlReader& table, std::string_view rules_key, std::string_view budgets_key);
Rule read_rule(TomlReader& table);
BudgetSpec read_budget(TomlReader& table);
Action read_action(TomlReader& table);

// The operations on which the rule can act at all: what `op` says, less what the action cannot do
// (a lie about read, a short rename). Bit set of Op.
std::uint64_t acting_ops(const Match& match, const Action& action);
// Operations that must reach the file system, each as it was asked, for the action to show: what
// the kernel would else answer from its caches.
std::uint64_t uncached_ops(const Action& action);
// Whether the rule's action has anything to do at this operation: it needs the feature that is
// missing, there is a change to hide.
bool concerns(const Rule& rule, const Operation& operation);

// "64KiB", "1GB", "4096" → bytes; "200ms", "1.5s" → nanoseconds; "50%" or bytes → Amount.
Result<std::uint64_t> parse_bytes(std::string_view text);
Result<std::uint64_t> parse_duration(std::string_view text);
Result<Amount> parse_amount(std::string_view text);
Result<std::uint64_t> parse_rate(std::string_view text);  // "100MiB/s" → bytes a second
// The shortest spellings that parse to the same: "64KiB", "200ms", "12.5%".
std::string print_bytes(std::uint64_t bytes);
std::string print_duration(std::uint64_t nanoseconds);
std::string print_amount(const Amount& amount);
std::string print_rate(std::uint64_t bytes_per_second);
// Bytes of an operation of `length` bytes; never more than these.
std::uint64_t bytes_of(const Amount& amount, std::uint64_t length);

std::string signal_name(int signal);  // "SIGKILL"; "signal 40" for a number that has no name here
std::optional<int> signal_from_name(std::string_view name);

}  // namespace savegate::faults
