#include <utility>

#include "faults/layout.h"

namespace savegate::faults {
namespace {

// Matches a `[…]` class at the front of `pattern` (after the '[') against `c`. Returns the pattern
// after the ']', or nothing where the bracket is never closed and so is an ordinary character.
struct ClassMatch {
  bool matched;
  std::string_view rest;
};

std::optional<ClassMatch> match_class(std::string_view pattern, char c) {
  std::size_t i = 0;
  bool negated = false;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) {
    negated = true;
    ++i;
  }
  bool matched = false;
  for (bool first = true; i < pattern.size(); first = false) {
    if (pattern[i] == ']' && !first) {
      return ClassMatch{matched != negated && c != '/', pattern.substr(i + 1)};
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const char low = pattern[i++];
    char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      high = pattern[i + 1];
      i += 2;
    }
    matched = matched || (low <= c && c <= high);
  }
  return std::nullopt;
}

// One pattern element that is no star, against the front of `path`; on success both are advanced.
bool match_one(std::string_view& pattern, std::string_view& path) {
  if (path.empty()) return false;
  const char c = path.front();
  switch (pattern.front()) {
    case '?':
      if (c == '/') return false;
      pattern.remove_prefix(1);
      path.remove_prefix(1);
      return true;
    case '[':
      if (auto found = match_class(pattern.substr(1), c)) {
        if (!found->matched) return false;
        pattern = found->rest;
        path.remove_prefix(1);
        return true;
      }
      break;
    case '\\':
      if (pattern.size() > 1) pattern.remove_prefix(1);
      break;
    default:
      break;
  }
  if (pattern.front() != c) return false;
  pattern.remove_prefix(1);
  path.remove_prefix(1);
  return true;
}

// Backtracks to the last star of each kind only: a later `*` makes an earlier `*` of the same
// component final, and a later `**` makes everything before it final.
bool glob_matches(std::string_view pattern, std::string_view path) {
  struct Star {
    std::string_view pattern;
    std::string_view path;
    bool set = false;
    bool whole_components = false;
  };
  Star single;
  Star deep;
  for (;;) {
    if (pattern.substr(0, 2) == "**") {
      pattern.remove_prefix(2);
      // "**/x" matches at the start of any component, so also "x" itself.
      const bool whole = !pattern.empty() && pattern.front() == '/';
      if (whole) pattern.remove_prefix(1);
      deep = {pattern, path, true, whole};
      single = {};
      continue;
    }
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      single = {pattern, path, true, false};
      continue;
    }
    if (pattern.empty() && path.empty()) return true;
    if (!pattern.empty() && match_one(pattern, path)) continue;
    if (single.set && !single.path.empty() && single.path.front() != '/') {
      single.path.remove_prefix(1);
      pattern = single.pattern;
      path = single.path;
      continue;
    }
    if (!deep.set || deep.path.empty()) return false;
    if (deep.whole_components) {
      const std::size_t slash = deep.path.find('/');
      if (slash == std::string_view::npos) return false;
      deep.path.remove_prefix(slash + 1);
    } else {
      deep.path.remove_prefix(1);
    }
    single = {};
    pattern = deep.pattern;
    path = deep.path;
  }
}

}  // namespace

Glob::Glob(std::string pattern) : pattern_(std::move(pattern)) {}

bool Glob::matches(std::string_view path) const { return glob_matches(pattern_, path); }

}  // namespace savegate::faults
