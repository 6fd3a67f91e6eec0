#include "faults/features.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

namespace savegate::faults {
namespace {

struct Entry {
  std::string_view name;
  std::uint64_t ops;
  int error;
};

// In the order of Feature.
const std::array<Entry, kFeatureCount>& table() {
  static const std::array<Entry, kFeatureCount> entries = {{
      {"rename", op_bit(Op::kRename), ENOSYS},
      {"rename-over", op_bit(Op::kRename), EEXIST},
      {"chmod", op_bit(Op::kChmod), EPERM},
      {"chown", op_bit(Op::kChown), EPERM},
      {"hard-link", op_bit(Op::kLink), EPERM},
      {"symlink", op_bit(Op::kSymlink), EPERM},
      {"xattr",
       op_bit(Op::kGetxattr) | op_bit(Op::kSetxattr) | op_bit(Op::kListxattr) |
           op_bit(Op::kRemovexattr),
       EOPNOTSUPP},
      {"direct-io", op_bit(Op::kOpen) | op_bit(Op::kCreate), EINVAL},
      {"mmap", op_bit(Op::kOpen) | op_bit(Op::kCreate), 0},
      {"fsyncdir", op_bit(Op::kFsyncdir), EINVAL},
      {"fallocate", op_bit(Op::kFallocate), EOPNOTSUPP},
  }};
  return entries;
}

const Entry& entry(Feature feature) { return table()[static_cast<std::size_t>(feature)]; }

bool needs(const Operation& operation, Feature feature) {
  if ((entry(feature).ops & op_bit(operation.op)) == 0) return false;
  if (feature == Feature::kRenameOver) return operation.replaces;
  if (feature == Feature::kDirectIo) return (operation.flags & O_DIRECT) != 0;
  return true;
}

}  // namespace

std::string_view feature_name(Feature feature) { return entry(feature).name; }

std::optional<Feature> feature_from_name(std::string_view name) {
  for (std::size_t i = 0; i < table().size(); ++i) {
    if (table()[i].name == name) return static_cast<Feature>(i);
  }
  return std::nullopt;
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  names.reserve(table().size());
  for (const Entry& one : table()) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> Features::names() const {
  std::vector<std::string> names;
  for (int i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (has(feature)) names.emplace_back(feature_name(feature));
  }
  return names;
}

std::uint64_t Features::ops() const {
  std::uint64_t ops = 0;
  for (int i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (has(feature)) ops |= entry(feature).ops;
  }
  return ops;
}

std::optional<Feature> Features::needed_by(const Operation& operation) const {
  for (int i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    if (has(feature) && needs(operation, feature)) return feature;
  }
  return std::nullopt;
}

int errno_without(Feature feature, const Operation& operation) {
  // ENOSYS would make the kernel refuse every later rename with flags by itself.
  if (feature == Feature::kRename && operation.flags != 0) return EINVAL;
  return entry(feature).error;
}

}  // namespace savegate::faults
