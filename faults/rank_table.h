// RankTable: what is kept for each rank, found without a lock.
//
// Entries are made at a rank's first operation and stay where they are until the table goes, so
// that a reference to one never ends early. Finding one takes a hash and a short chain; making one
// takes a lock. T is made from the rank and whatever else of() is given.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace savegate::faults {

template <class T>
class RankTable {
 public:
  RankTable() = default;
  RankTable(const RankTable&) = delete;
  RankTable& operator=(const RankTable&) = delete;
  ~RankTable() {
    for (auto& bucket : buckets_) {
      std::unique_ptr<Node> node(bucket.load());
      while (node) node.reset(node->next);
    }
  }

  T* find(int rank) const {
    for (Node* node = bucket_of(rank).load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
      if (node->rank == rank) return &node->value;
    }
    return nullptr;
  }

  template <class... Arguments>
  T& of(int rank, Arguments&&... arguments) {
    if (T* found = find(rank)) return *found;
    const std::lock_guard lock(mutex_);
    if (T* found = find(rank)) return *found;
    std::atomic<Node*>& bucket = bucket_of(rank);
    auto node = std::make_unique<Node>(rank, bucket.load(), std::forward<Arguments>(arguments)...);
    bucket.store(node.get(), std::memory_order_release);
    return node.release()->value;
  }

 private:
  struct Node {
    template <class... Arguments>
    Node(int of, Node* after, Arguments&&... arguments)
        : rank(of), next(after), value(of, std::forward<Arguments>(arguments)...) {}
    const int rank;
    Node* const next;
    T value;
  };
  static constexpr std::size_t kBuckets = 256;
  static std::size_t index_of(int rank) { return static_cast<std::size_t>(rank) % kBuckets; }
  std::atomic<Node*>& bucket_of(int rank) { return buckets_[index_of(rank)]; }
  const std::atomic<Node*>& bucket_of(int rank) const { return buckets_[index_of(rank)]; }

  std::array<std::atomic<Node*>, kBuckets> buckets_{};
  std::mutex mutex_;  // of making; innermost
};

}  // namespace savegate::faults
