// Byte budgets: a file system that is full after so many bytes.
//
// A Budget charges blocks as a real file system does, not bytes written: a block of a file is
// charged when it is first written, so that filling a hole charges and rewriting does not.
// Truncating gives back what lies behind the new end, punching what lies in the hole; the rest
// comes back when the last name and the last open handle of the file are gone. The write that meets
// the limit goes partly in (short), the next one fails. A limit that is no multiple of the block is
// rounded down to one.
//
// Inodes are counted apart: one is taken before a file, directory, symlink or special file is made,
// becomes that file's when it is, and comes back with its last name and handle. A link takes none.
//
//   Budget quota({.name = "quota", .limit = 1 << 30, .error = ENOSPC});
//   std::uint64_t granted = quota.charge(file, /*from=*/0, /*to=*/4 << 20);   // bytes that fit
//
// Accounts holds the budgets of a plan and charges several of them as one. A Budget alone is not
// thread-safe; Accounts is.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "faults/operation.h"
#include "faults/plan.h"

namespace savegate::faults {

// What is left where several budgets meet.
struct Space {
  std::uint64_t limit = 0;  // bytes
  std::uint64_t free = 0;   // bytes
  struct Inodes {
    std::uint64_t limit = 0;
    std::uint64_t free = 0;
  };
  std::optional<Inodes> inodes;
};

class Budget {
 public:
  explicit Budget(BudgetSpec spec);

  // Bytes of [from, to) that fit, from the front; charge() takes them. 0 means exhausted: fail with
  // spec().error.
  std::uint64_t fits(FileId file, std::uint64_t from, std::uint64_t to) const;
  std::uint64_t charge(FileId file, std::uint64_t from, std::uint64_t to);
  // A file that was there before: charged whole, even beyond the limit.
  void adopt(FileId file, std::uint64_t size);
  void shrink(FileId file, std::uint64_t size);  // truncate; a growing one changes nothing
  void punch(FileId file, std::uint64_t from, std::uint64_t to);  // blocks that lie in it whole
  void release(FileId file);  // last name and last handle are gone

  bool has_inode() const { return !spec_.inodes || inodes_used() < *spec_.inodes; }
  void take_inode() { ++inodes_taken_; }
  void settle_inode(FileId file);  // of which it is; 0: none was made

  std::uint64_t limit() const { return blocks_ * spec_.block; }  // bytes
  std::uint64_t free() const;                                    // bytes
  std::uint64_t free_inodes() const;                             // where they are limited
  const BudgetSpec& spec() const { return spec_; }

 private:
  using Blocks = std::map<std::uint64_t, std::uint64_t>;  // charged: first block → end

  std::uint64_t block_end(std::uint64_t to) const {
    return to == 0 ? 0 : (to - 1) / spec_.block + 1;
  }
  void take(Blocks& blocks, std::uint64_t first, std::uint64_t end);

  BudgetSpec spec_;
  std::uint64_t blocks_;    // of the limit
  std::uint64_t used_ = 0;  // blocks
  std::unordered_map<FileId, Blocks> files_;
  std::uint64_t inodes_used() const { return inodes_taken_ + inodes_.size(); }
  std::uint64_t inodes_taken_ = 0;  // not settled yet
  std::unordered_set<FileId> inodes_;
};

class Accounts {
 public:
  explicit Accounts(const std::vector<BudgetSpec>& specs);

  struct Grant {
    std::uint64_t bytes = 0;
    std::optional<std::uint32_t> refused_by;  // the tightest budget, if not all was granted
  };
  // Charges all of `budgets` with what fits into each. `whole`: all of it or nothing.
  Grant charge(const std::vector<std::uint32_t>& budgets, FileId file, std::uint64_t from,
               std::uint64_t to, bool whole);
  void adopt(const std::vector<std::uint32_t>& budgets, FileId file, std::uint64_t size);
  void shrink(FileId file, std::uint64_t size);
  void punch(FileId file, std::uint64_t from, std::uint64_t to);
  void release(FileId file);
  // Takes an inode of each, or of none: the budget that has none left.
  std::optional<std::uint32_t> take_inode(const std::vector<std::uint32_t>& budgets);
  void settle_inode(const std::vector<std::uint32_t>& budgets, FileId file);

  std::optional<Space> tightest(const std::vector<std::uint32_t>& budgets) const;

 private:
  mutable std::mutex mutex_;  // innermost: nothing else is locked while it is held
  std::vector<Budget> budgets_;
};

}  // namespace savegate::faults
