// RuleSet: a set of a plan's rules, one bit each.
//
// Each bit is read and changed on its own by any thread; a reader sees every change sooner or
// later, and at once what its own thread did.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace savegate::faults {

class RuleSet {
 public:
  RuleSet() = default;
  explicit RuleSet(std::size_t rules) : words_((rules + 63) / 64) {}
  RuleSet(const RuleSet& other) : words_(other.size()) { *this |= other; }
  RuleSet& operator=(const RuleSet& other) = delete;
  RuleSet(RuleSet&&) = default;
  RuleSet& operator=(RuleSet&&) = default;
  ~RuleSet() = default;

  std::size_t size() const { return words_.size(); }  // words
  std::uint64_t word(std::size_t i) const { return words_[i].load(std::memory_order_relaxed); }
  bool has(std::uint32_t rule) const { return (word(rule / 64) & bit(rule)) != 0; }

  void add(std::uint32_t rule) { words_[rule / 64].fetch_or(bit(rule), std::memory_order_relaxed); }
  void remove(std::uint32_t rule) {
    words_[rule / 64].fetch_and(~bit(rule), std::memory_order_relaxed);
  }
  void set_word(std::size_t i, std::uint64_t bits) {
    words_[i].store(bits, std::memory_order_relaxed);
  }
  RuleSet& operator|=(const RuleSet& other) {
    for (std::size_t i = 0; i < size(); ++i) set_word(i, word(i) | other.word(i));
    return *this;
  }

 private:
  static std::uint64_t bit(std::uint32_t rule) { return std::uint64_t{1} << (rule % 64); }

  std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace savegate::faults
