// Layout: which role a file plays in a checkpoint, from its name alone.
//
// `role` is the pattern list that the path matches first (shard, marker, pointer, auxiliary). A
// temporary file has the role of the file that it becomes: a `temporary` pattern describes one path
// component and its first `*` is the final name, so that with temporary = ["*.tmp", "tmp_*"] the
// path "tmp_step_2/.metadata.tmp" becomes "step_2/.metadata" and has that file's role.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace savegate::faults {

enum class Role : std::uint8_t { kNone, kShard, kMarker, kPointer, kAuxiliary };
std::string_view role_name(Role role);  // "shard"
std::optional<Role> role_from_name(std::string_view name);

struct Layout {
  std::vector<std::string> shard;  // globs on the path below the checkpoint root, `**` over folders
  std::vector<std::string> marker;
  std::vector<std::string> pointer;
  std::vector<std::string> auxiliary;
  std::vector<std::string> temporary;  // globs on one path component; the first * is the final name
};

struct Classified {
  Role role = Role::kNone;
  bool temporary = false;
  std::string final_path;  // what it becomes; the path itself if not temporary
};

// From a [layout] table (keys shard, marker, pointer, auxiliary, temporary: lists of patterns).
// Keys that it does not know are left for the caller to ask for.
class TomlReader;
Layout read_layout(TomlReader& table);

Classified classify(const Layout& layout, std::string_view path);

// `*` and `?` stay within a path component, `**` crosses them ("**/x" also matches "x"), `[a-c]`,
// `\` escapes. Compiled once, matched without allocation.
class Glob {
 public:
  explicit Glob(std::string pattern);
  bool matches(std::string_view path) const;
  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
};

}  // namespace savegate::faults
