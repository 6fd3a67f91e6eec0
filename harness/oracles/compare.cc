#include "harness/oracles/compare.h"

#include <fmt/format.h>

namespace savegate::harness {
namespace {

constexpr std::size_t kDifferencesKept = 6;

template <class Line>
void add(Comparison& comparison, Line&& line) {
  if (comparison.differences.size() < kDifferencesKept) comparison.differences.push_back(line());
}

bool same_content(const Item& a, const Item& b) {
  return a.digest == b.digest && a.bytes == b.bytes && a.dtype == b.dtype &&
         a.local_shape == b.local_shape && a.global_shape == b.global_shape;
}

// Which rank's item it is by its bytes, if just one other rank saved them: of a swap both are
// named.
std::string whose(const SaveGroup& group, int rank, const Item& item) {
  const SaveCall* holder = nullptr;
  const Item* held = nullptr;
  for (const SaveCall& call : group.calls) {
    for (const Item& saved : call.begin->items) {
      if (saved.digest != item.digest || saved.bytes != item.bytes || item.bytes == 0) continue;
      if (held != nullptr || call.rank == rank) return "";  // nothing that tells ranks apart
      holder = &call;
      held = &saved;
    }
  }
  return held == nullptr ? "" : fmt::format("; rank {} saved it as `{}`", holder->rank, held->name);
}

}  // namespace

const Item* find_item(const std::vector<Item>& items, const Item& like) {
  for (const Item& item : items) {
    if (item.name == like.name && item.offset == like.offset) return &item;
  }
  return nullptr;
}

Comparison compare_with(const SaveGroup& group, const std::vector<std::pair<int, Item>>& found) {
  Comparison comparison;
  for (const auto& [rank, item] : found) {
    const SaveCall* call = group.call_of(rank);
    const Item* saved = call == nullptr ? nullptr : find_item(call->begin->items, item);
    if (saved == nullptr) {
      add(comparison, [&, rank = rank, &item = item] {
        return fmt::format("rank {} {}: not among the items saved in life {} at step {}", rank,
                           quote(item), group.life->record.number, group.step);
      });
      continue;
    }
    ++comparison.compared;
    if (!same_content(*saved, item)) {
      add(comparison, [&, rank = rank, &item = item] {
        return fmt::format("rank {} {}, but saved in life {} at step {} as {}{}", rank, quote(item),
                           group.life->record.number, group.step, quote(*saved),
                           whose(group, rank, item));
      });
    }
  }
  return comparison;
}

std::optional<Comparison> compare_with_writers(const View& view, std::int64_t step,
                                               std::uint64_t before_ns,
                                               const std::vector<std::pair<int, Item>>& found) {
  std::optional<Comparison> last;
  for (const SaveGroup* group : view.writers(step, before_ns)) {
    last = compare_with(*group, found);
    if (last->equal()) return last;
  }
  return last;
}

std::vector<std::pair<int, Item>> restored_items(const Life& life, std::int64_t step) {
  std::vector<std::pair<int, Item>> items;
  for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
    const Event* resumed = resumed_event(life, static_cast<int>(rank));
    if (resumed == nullptr || !resumed->ok || resumed->step != step) continue;
    for (const Item& item : resumed->items) items.emplace_back(static_cast<int>(rank), item);
  }
  return items;
}

}  // namespace savegate::harness
