// The injector: (plan, seed, operation) → decision. Pure: it executes nothing and reads no clock.
//
// The file system asks rules_for() once a file and name; a null answer means that no rule can ever
// act on it, and its operations then skip the injector altogether. decide() takes no lock that an
// operation of another file could hold for long, and allocates only when a rule fires or counts a
// rank or file for the first time.
//
//   auto rules = injector.rules_for("step_2/shard-1.tmp");      // kept with the inode
//   Decision d = injector.decide({.op = Op::kWrite, .caller = caller, .rules = rules.get(), …});
//   … execute what the decision says, then one FiredRecord for each of d.hits …
//
// Random decisions come from (seed, rule, rank, the rank's own count of candidate operations), so
// the interleaving of ranks changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/budget.h"
#include "faults/layout.h"
#include "faults/operation.h"
#include "faults/plan.h"
#include "faults/rule_set.h"

namespace savegate::faults {

class ArmedPlan;  // armed_plan.h

// What rules could act on one file by one name; valid as long as the holder keeps it.
class FileRules {
 public:
  bool can_match(Op op) const { return (ops_ & op_bit(op)) != 0; }
  // Reads (or writes) must reach the daemon exactly as asked: no page cache in between.
  bool needs_direct_reads() const { return can_match(Op::kRead); }
  bool needs_direct_writes() const { return can_match(Op::kWrite); }
  // The file system keeps what the file held before: at its last fsync that succeeded, or before
  // each byte was last written.
  bool keeps_unsynced() const { return keeps_unsynced_; }
  bool keeps_past() const { return keeps_past_; }
  Role role() const { return role_; }
  bool temporary() const { return temporary_; }

 private:
  friend class Injector;
  std::uint64_t ops_ = 0;
  bool keeps_unsynced_ = false;
  bool keeps_past_ = false;
  Role role_ = Role::kNone;
  bool temporary_ = false;
  mutable RuleSet rules_;  // those that are not over for this file
  std::vector<std::uint32_t> budgets_;
  std::shared_ptr<ArmedPlan> plan_;
};

struct Hit {
  std::string rule;
  std::uint64_t hit = 0;
  std::string action;
  bool stalls = false;  // it makes the operation wait
  int life = 0;
  int attempt = 0;
  std::string phase;
};

// What to do, in this order: stall (with the frozen processes stopped); kill before; execute the
// first `allowed` bytes (or all), or nothing if `lie`; corrupt; kill in the middle (allowed bytes
// are done) or after; reply `error` if set (also where some bytes took effect before it), else the
// bytes done.
struct Decision {
  std::uint64_t delay_ns = 0;
  bool hang = false;                 // until released; rule index in hang_rule
  std::optional<KillTarget> freeze;  // as long as it stalls
  bool allowed_is_short = false;     // reply success with `allowed` bytes (short write, short read)
  bool lie = false;                  // reply full success, do nothing
  bool no_shared_mmap = false;       // of what is opened
  bool drops_unsynced = false;       // the fsync that fails; what was not synced is gone
  bool takes_inode = false;          // whatever comes of it, settle_inode() is to be told
  std::uint32_t hang_rule = 0;
  int error = 0;
  std::optional<RaceAction> race;      // its effect comes first, then the operation
  std::optional<KillAction> kill;      // when, signal, target; for kMiddle, `allowed` is the byte
  std::uint64_t allowed = UINT64_MAX;  // bytes that take effect
  std::optional<CorruptAction> corrupt;
  std::uint64_t corrupt_at = 0;  // byte of the operation at which it begins
  std::uint64_t corrupt_length = 0;
  std::uint64_t corrupt_with = 0;  // of a swap: the byte at which the other block begins
  std::optional<TimestampsAction> timestamps;
  std::optional<StaleAction> stale;  // what the caller is shown is so old
  std::string stale_rule;
  std::optional<Hit> loses;  // at the end of the mount; the hit is counted then
  std::vector<Hit> hits;     // empty: nothing acts
  bool acts() const { return !hits.empty() || loses.has_value(); }
};

class Injector {
 public:
  Injector(Plan plan, Layout layout, int life);
  ~Injector();

  // Arm another plan or none; returned FileRules of older plans never match again, so the file
  // system re-reads rules_for() when generation() changed.
  void arm(Plan plan);
  std::uint64_t generation() const;
  Plan plan() const;

  std::shared_ptr<const FileRules> rules_for(std::string_view path) const;  // null: none
  Decision decide(const Operation& operation);

  // Phase of a rank. enter("save 2") opens a span (its second time in a life is attempt 2), leave()
  // closes it unless another was entered since, point("commit") makes the phase "save 2/commit"
  // until the next point or leave. The time is that of Operation::now_ns; `since` counts from it.
  void enter(int rank, std::string_view span, std::uint64_t now_ns = 0);
  void leave(int rank, std::string_view span);
  void point(int rank, std::string_view name, std::uint64_t now_ns = 0);
  std::string phase(int rank) const;
  int attempt(int rank) const;

  // Accounts of the budgets. adopt(): a file that was there when the mount began.
  void adopt(FileId file, std::string_view path, std::uint64_t size);
  void truncated(FileId file, std::uint64_t size);
  void punched(FileId file, std::uint64_t from, std::uint64_t to);
  // What became of the inode that a decision took: the file that was made, 0 for none.
  void settle_inode(std::string_view path, FileId file);
  // The last name is gone: nothing is given back while the file is open.
  void unlinked(FileId) {}
  void released(FileId file);  // last name and last handle are gone
  // What the tightest budgets covering `path` leave; nothing where none does.
  std::optional<Space> space(std::string_view path) const;

  struct RuleCount {
    std::string name;
    bool required;
    std::uint64_t candidates;
    std::uint64_t hits;
  };
  std::vector<RuleCount> counts() const;  // rules, then budgets

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace savegate::faults
