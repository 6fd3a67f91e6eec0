#include "faults/budget.h"

#include <algorithm>
#include <utility>

namespace savegate::faults {

Budget::Budget(BudgetSpec spec)
    : spec_(std::move(spec)), blocks_(spec_.limit.value_or(UINT64_MAX) / spec_.block) {}

std::uint64_t Budget::free() const {
  return used_ >= blocks_ ? 0 : (blocks_ - used_) * spec_.block;
}

std::uint64_t Budget::fits(FileId file, std::uint64_t from, std::uint64_t to) const {
  static const Blocks kNone;
  const auto found = files_.find(file);
  const Blocks& charged = found == files_.end() ? kNone : found->second;
  std::uint64_t left = used_ >= blocks_ ? 0 : blocks_ - used_;
  const std::uint64_t end = block_end(to);
  std::uint64_t block = from / spec_.block;
  auto next = charged.upper_bound(block);
  if (next != charged.begin()) block = std::max(block, std::prev(next)->second);
  while (block < end) {  // a hole begins here
    const std::uint64_t hole_end = next == charged.end() ? end : std::min(end, next->first);
    const std::uint64_t hole = hole_end - block;
    if (hole > left) {
      const std::uint64_t stop = (block + left) * spec_.block;
      return stop <= from ? 0 : std::min(to, stop) - from;
    }
    left -= hole;
    block = hole_end;
    if (next != charged.end() && next->first == hole_end) {
      block = next->second;
      ++next;
    }
  }
  return to - from;
}

std::uint64_t Budget::charge(FileId file, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t granted = fits(file, from, to);
  if (granted > 0) take(files_[file], from / spec_.block, block_end(from + granted));
  return granted;
}

std::uint64_t Budget::free_inodes() const {
  return has_inode() ? spec_.inodes.value_or(UINT64_MAX) - inodes_used() : 0;
}

void Budget::settle_inode(FileId file) {
  if (inodes_taken_ > 0) --inodes_taken_;  // else it was taken from another plan's budget
  if (file != 0) inodes_.insert(file);
}

void Budget::adopt(FileId file, std::uint64_t size) {
  inodes_.insert(file);
  if (size > 0) take(files_[file], 0, block_end(size));
}

// Adds [first, end) to the charged blocks, merged with what it touches. The usual cases, a rewrite
// and an appending write, change one interval in place.
void Budget::take(Blocks& blocks, std::uint64_t first, std::uint64_t end) {
  auto into = blocks.upper_bound(first);
  if (into == blocks.begin() || std::prev(into)->second < first) {
    into = blocks.emplace_hint(into, first, first);
  } else {
    --into;
  }
  if (into->second >= end) return;
  used_ += end - into->second;
  into->second = end;
  for (auto next = std::next(into); next != blocks.end() && next->first <= into->second;) {
    used_ -= std::min(into->second, next->second) - next->first;
    into->second = std::max(into->second, next->second);
    next = blocks.erase(next);
  }
}

void Budget::shrink(FileId file, std::uint64_t size) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  Blocks& blocks = found->second;
  const std::uint64_t end = block_end(size);
  while (!blocks.empty()) {
    const auto last = std::prev(blocks.end());
    if (last->second <= end) break;
    if (last->first < end) {
      used_ -= last->second - end;
      last->second = end;
      break;
    }
    used_ -= last->second - last->first;
    blocks.erase(last);
  }
  if (blocks.empty()) files_.erase(found);
}

void Budget::punch(FileId file, std::uint64_t from, std::uint64_t to) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  Blocks& blocks = found->second;
  const std::uint64_t first = block_end(from);
  const std::uint64_t end = to / spec_.block;
  auto at = blocks.upper_bound(first);
  if (at != blocks.begin()) --at;
  while (at != blocks.end() && at->first < end) {
    const auto [begin, until] = *at;
    const std::uint64_t hole_begin = std::max(begin, first);
    const std::uint64_t hole_end = std::min(until, end);
    if (hole_begin >= hole_end) {
      ++at;
      continue;
    }
    used_ -= hole_end - hole_begin;
    at = blocks.erase(at);
    if (begin < hole_begin) blocks.emplace_hint(at, begin, hole_begin);
    if (hole_end < until) blocks.emplace_hint(at, hole_end, until);
  }
  if (blocks.empty()) files_.erase(found);
}

void Budget::release(FileId file) {
  shrink(file, 0);
  inodes_.erase(file);
}

Accounts::Accounts(const std::vector<BudgetSpec>& specs) {
  for (const BudgetSpec& spec : specs) budgets_.emplace_back(spec);
}

Accounts::Grant Accounts::charge(const std::vector<std::uint32_t>& budgets, FileId file,
                                 std::uint64_t from, std::uint64_t to, bool whole) {
  const std::lock_guard lock(mutex_);
  Grant grant{.bytes = to - from, .refused_by = {}};
  for (const std::uint32_t index : budgets) {
    const std::uint64_t bytes = budgets_[index].fits(file, from, to);
    if (bytes < grant.bytes) grant = {.bytes = bytes, .refused_by = index};
  }
  if (whole && grant.refused_by) grant.bytes = 0;
  for (const std::uint32_t index : budgets) {
    budgets_[index].charge(file, from, from + grant.bytes);
  }
  return grant;
}

void Accounts::adopt(const std::vector<std::uint32_t>& budgets, FileId file, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t index : budgets) budgets_[index].adopt(file, size);
}

void Accounts::shrink(FileId file, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  for (Budget& budget : budgets_) budget.shrink(file, size);
}

void Accounts::punch(FileId file, std::uint64_t from, std::uint64_t to) {
  const std::lock_guard lock(mutex_);
  for (Budget& budget : budgets_) budget.punch(file, from, to);
}

void Accounts::release(FileId file) {
  const std::lock_guard lock(mutex_);
  for (Budget& budget : budgets_) budget.release(file);
}

std::optional<std::uint32_t> Accounts::take_inode(const std::vector<std::uint32_t>& budgets) {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t index : budgets) {
    if (!budgets_[index].has_inode()) return index;
  }
  for (const std::uint32_t index : budgets) budgets_[index].take_inode();
  return std::nullopt;
}

void Accounts::settle_inode(const std::vector<std::uint32_t>& budgets, FileId file) {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t index : budgets) budgets_[index].settle_inode(file);
}

std::optional<Space> Accounts::tightest(const std::vector<std::uint32_t>& budgets) const {
  const std::lock_guard lock(mutex_);
  std::optional<Space> tightest;
  for (const std::uint32_t index : budgets) {
    const Budget& budget = budgets_[index];
    if (!tightest) {
      tightest = Space{.limit = budget.limit(), .free = budget.free(), .inodes = {}};
    } else if (budget.free() < tightest->free) {
      tightest->limit = budget.limit();
      tightest->free = budget.free();
    }
    const std::uint64_t free = budget.free_inodes();
    if (budget.spec().inodes && (!tightest->inodes || free < tightest->inodes->free)) {
      tightest->inodes = {.limit = *budget.spec().inodes, .free = free};
    }
  }
  return tightest;
}

}  // namespace savegate::faults
