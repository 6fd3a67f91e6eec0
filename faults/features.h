// Features that a file system may not have: which operations ask for each, and what they get there.
//
// The errors are those of Linux: of the VFS where a file system leaves an operation out (EPERM for
// links, EOPNOTSUPP for extended attributes and fallocate, EINVAL for O_DIRECT and for fsync on a
// directory, ENODEV for mmap), of vfat for modes and owners (EPERM), and of FUSE mounts of object
// stores for names (ENOSYS for a rename, EEXIST for one over an existing name).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/operation.h"

namespace savegate::faults {

enum class Feature : std::uint8_t {
  kRename,
  kRenameOver,  // onto a name that exists
  kChmod,
  kChown,
  kHardLink,
  kSymlink,
  kXattr,
  kDirectIo,
  kMmap,  // shared
  kFsyncdir,
  kFallocate,
};
inline constexpr int kFeatureCount = static_cast<int>(Feature::kFallocate) + 1;

std::string_view feature_name(Feature feature);  // "hard-link"
std::optional<Feature> feature_from_name(std::string_view name);
std::vector<std::string> feature_names();

// A set of features, with the operations that ask for any of them.
class Features {
 public:
  void add(Feature feature) { bits_ |= bit(feature); }
  bool has(Feature feature) const { return (bits_ & bit(feature)) != 0; }
  bool empty() const { return bits_ == 0; }
  std::vector<std::string> names() const;

  std::uint64_t ops() const;  // bit set of Op
  // The feature of the set that the operation cannot do without.
  std::optional<Feature> needed_by(const Operation& operation) const;

  bool operator==(const Features&) const = default;

 private:
  static std::uint32_t bit(Feature feature) { return 1u << static_cast<unsigned>(feature); }
  std::uint32_t bits_ = 0;
};

// What an operation gets that needs it. 0 for mmap: the open succeeds, the mapping fails (ENODEV).
int errno_without(Feature feature, const Operation& operation);

}  // namespace savegate::faults
