// Comparing what was restored or read with what was held when it was saved, item by item.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/oracles/view.h"

namespace savegate::harness {

struct Comparison {
  std::size_t compared = 0;              // items
  std::vector<std::string> differences;  // quoted, at most a handful
  bool equal() const { return differences.empty(); }
};

// Each item of a restore or reading against the item of the same rank, name and offset in the save.
// Those that the save does not know are differences.
Comparison compare_with(const SaveGroup& group, const std::vector<std::pair<int, Item>>& found);

// Against each save that can have written it, all items against the same one, since a mixture of
// two saves is no match. The first that is equal, else the last tried. Nothing if no save wrote
// that step.
std::optional<Comparison> compare_with_writers(const View& view, std::int64_t step,
                                               std::uint64_t before_ns,
                                               const std::vector<std::pair<int, Item>>& found);

// Items of all ranks that resumed at the step in this life.
std::vector<std::pair<int, Item>> restored_items(const Life& life, std::int64_t step);

const Item* find_item(const std::vector<Item>& items, const Item& like);

}  // namespace savegate::harness
