#include "faults/layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"none", "shard", "marker", "pointer",
                                                    "auxiliary"};

// The final name of one path component under a temporary pattern "prefix*suffix…": what stands for
// the first star. The rest of the pattern (after a second star) may be anything that matches.
std::optional<std::string_view> final_component(const std::string& pattern,
                                                std::string_view component) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos) return std::nullopt;
  const std::string_view prefix = std::string_view(pattern).substr(0, star);
  if (component.size() <= prefix.size() || component.substr(0, star) != prefix) {
    return std::nullopt;
  }
  // The longest name that leaves a rest which the pattern's tail matches.
  const Glob tail(pattern.substr(star + 1));
  const std::string_view rest = component.substr(star);
  for (std::size_t length = rest.size(); length > 0; --length) {
    if (tail.matches(rest.substr(length))) return rest.substr(0, length);
  }
  return std::nullopt;
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view path) {
  for (const std::string& pattern : patterns) {
    if (Glob(pattern).matches(path)) return true;
  }
  return false;
}

Role role_of(const Layout& layout, std::string_view path) {
  if (any_matches(layout.shard, path)) return Role::kShard;
  if (any_matches(layout.marker, path)) return Role::kMarker;
  if (any_matches(layout.pointer, path)) return Role::kPointer;
  if (any_matches(layout.auxiliary, path)) return Role::kAuxiliary;
  return Role::kNone;
}

}  // namespace

std::string_view role_name(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

std::optional<Role> role_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (kRoles[i] == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

Layout read_layout(TomlReader& table) {
  Layout layout;
  layout.shard = table.strings_or_none("shard");
  layout.marker = table.strings_or_none("marker");
  layout.pointer = table.strings_or_none("pointer");
  layout.auxiliary = table.strings_or_none("auxiliary");
  layout.temporary = table.strings_or_none("temporary");
  for (const std::string& pattern : layout.temporary) {
    if (pattern.find('*') == std::string::npos || pattern.find('/') != std::string::npos) {
      table.error_at("temporary", "pattern `" + pattern +
                                      "` must describe one path component and have a `*` that "
                                      "stands for the final name");
    }
  }
  return layout;
}

Classified classify(const Layout& layout, std::string_view path) {
  Classified classified;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    std::string_view component = path.substr(begin, end - begin);
    for (const std::string& pattern : layout.temporary) {
      if (auto name = final_component(pattern, component)) {
        component = *name;
        classified.temporary = true;
        break;
      }
    }
    if (begin > 0) classified.final_path += '/';
    classified.final_path += component;
    begin = end + 1;
  }
  classified.role = role_of(layout, classified.final_path);
  return classified;
}

}  // namespace savegate::faults
