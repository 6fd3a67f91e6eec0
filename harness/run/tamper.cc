#include "harness/run/tamper.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>
#include <vector>

#include "harness/run/files.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;
using faults::Role;

constexpr std::uint64_t kZeroedBytes = 4096;

struct Candidate {
  std::string path;  // below the root
  Role role = Role::kNone;
  std::optional<std::int64_t> step;
};

class Tree {
 public:
  static Result<Tree> read(const Subject& subject, const std::string& root);

  // Files of the role in the checkpoint that a restore would take, in the order of names.
  std::vector<std::string> current(Role role) const { return of_step(role, newest_); }
  std::vector<std::string> of_step(Role role, std::optional<std::int64_t> step) const;
  std::optional<std::int64_t> step_before_newest() const;
  std::vector<std::string> matching(const std::string& glob) const;

 private:
  std::optional<std::int64_t> step_named_by_pointer(const std::string& root) const;
  std::optional<std::int64_t> step_in(const std::string& text) const;

  std::vector<Candidate> files_;
  std::optional<std::regex> step_pattern_;
  std::optional<std::int64_t> newest_;
};

std::optional<std::int64_t> to_step(const std::string& digits) {
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

std::optional<std::int64_t> Tree::step_in(const std::string& text) const {
  std::smatch found;
  if (!step_pattern_ || !std::regex_search(text, found, *step_pattern_) || found.size() < 2)
    return {};
  return to_step(found[1].str());
}

Result<Tree> Tree::read(const Subject& subject, const std::string& root) {
  Tree tree;
  if (!subject.step_pattern.empty()) {
    try {
      tree.step_pattern_.emplace(subject.step_pattern);
    } catch (const std::regex_error& error) {
      return fail(invalid("step_pattern `" + subject.step_pattern + "`: " + error.what()));
    }
  }
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->is_directory() && !at->is_symlink()) continue;
    const std::string path = at->path().lexically_relative(root).string();
    const faults::Classified classified = faults::classify(subject.layout, path);
    tree.files_.push_back(
        {path, classified.temporary ? Role::kNone : classified.role, tree.step_in(path)});
  }
  if (error) return fail(system_error("readdir", root, error.value()));
  std::sort(tree.files_.begin(), tree.files_.end(),
            [](const Candidate& a, const Candidate& b) { return a.path < b.path; });
  tree.newest_ = tree.step_named_by_pointer(root);
  if (!tree.newest_) {
    for (const Candidate& file : tree.files_) {
      if (file.role != Role::kNone) tree.newest_ = std::max(tree.newest_, file.step);
    }
  }
  return tree;
}

std::optional<std::int64_t> Tree::step_named_by_pointer(const std::string& root) const {
  for (const Candidate& file : files_) {
    if (file.role != Role::kPointer) continue;
    const std::string full = root + "/" + file.path;
    std::error_code error;
    std::string content = fs::read_symlink(full, error).string();
    if (error) {
      const auto read = read_file(full);
      if (!read) continue;
      content = read->substr(0, read->find_last_not_of(" \n") + 1);
    }
    // A pointer may hold the bare name of a directory, where the pattern expects a path.
    for (const std::string& text : {content, content + "/"}) {
      if (auto step = step_in(text)) return step;
    }
    if (auto step = to_step(content)) return step;
  }
  return std::nullopt;
}

std::vector<std::string> Tree::of_step(Role role, std::optional<std::int64_t> step) const {
  std::vector<std::string> found;
  for (const Candidate& file : files_) {
    if (file.role != role) continue;
    if (role == Role::kPointer || !step || !file.step || file.step == step)
      found.push_back(file.path);
  }
  return found;
}

std::optional<std::int64_t> Tree::step_before_newest() const {
  std::optional<std::int64_t> before;
  for (const Candidate& file : files_) {
    if (file.role == Role::kShard && file.step && newest_ && *file.step < *newest_) {
      before = std::max(before, file.step);
    }
  }
  return before;
}

std::vector<std::string> Tree::matching(const std::string& pattern) const {
  const faults::Glob glob(pattern);
  std::vector<std::string> found;
  for (const Candidate& file : files_) {
    if (glob.matches(file.path)) found.push_back(file.path);
  }
  return found;
}

std::string described(const Tamper& tamper) {
  if (!tamper.path.empty()) return "file matching `" + tamper.path + "`";
  return std::string(faults::role_name(tamper.role)) + " file of rank " +
         std::to_string(tamper.rank);
}

// The first file of a rank among files in the order of names.
Result<std::string> pick(const std::vector<std::string>& files, int rank, const Subject& subject,
                         const Tamper& tamper) {
  const int per_rank =
      tamper.path.empty() && tamper.role == Role::kShard ? std::max(1, subject.shards_per_rank) : 1;
  const auto index =
      static_cast<std::size_t>(std::max(0, rank)) * static_cast<std::size_t>(per_rank);
  if (index < files.size()) return files[index];
  return fail(invalid(std::string(tamper_name(tamper.kind)) + ": there is no " + described(tamper) +
                      " in the checkpoint tree (" + std::to_string(files.size()) + " such files)"));
}

Result<std::uint64_t> file_size(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return fail(system_error("stat", path));
  if (!S_ISREG(found.st_mode)) return fail(invalid("is no regular file", path));
  return static_cast<std::uint64_t>(found.st_size);
}

std::uint64_t position(const faults::Amount& at, std::uint64_t size) {
  return at.share ? static_cast<std::uint64_t>(*at.share * static_cast<double>(size)) : at.bytes;
}

// Bytes of [at, at + length) changed by `change`; an error where that changes nothing.
template <class Change>
Result<void> rewrite(const std::string& path, std::uint64_t at, std::uint64_t length,
                     Change change) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return fail(system_error("open", path));
  std::string before(length, '\0');
  const ssize_t got = ::pread(fd.get(), before.data(), length, static_cast<off_t>(at));
  if (got < 0) return fail(system_error("read", path));
  before.resize(static_cast<std::size_t>(got));
  std::string after = before;
  std::transform(after.begin(), after.end(), after.begin(), change);
  if (after == before)
    return fail(invalid("tampering at byte " + std::to_string(at) + " would change nothing", path));
  const ssize_t put = ::pwrite(fd.get(), after.data(), after.size(), static_cast<off_t>(at));
  if (put != got) return fail(system_error("write", path));
  return {};
}

Result<void> truncate_to(const std::string& path, std::uint64_t size) {
  SAVEGATE_CHECK(file_size(path));
  if (::truncate(path.c_str(), static_cast<off_t>(size)) != 0)
    return fail(system_error("truncate", path));
  return {};
}

Result<void> swap_files(const std::string& a, const std::string& b) {
  const std::string aside = a + ".savegate-swap";
  if (::rename(a.c_str(), aside.c_str()) != 0) return fail(system_error("rename", a));
  if (::rename(b.c_str(), a.c_str()) != 0) return fail(system_error("rename", b));
  if (::rename(aside.c_str(), b.c_str()) != 0) return fail(system_error("rename", aside));
  return {};
}

// A file of an older step, or else of another rank, takes this one's place.
Result<std::string> find_foreign(const Tree& tree, const Tamper& tamper, const Subject& subject,
                                 const std::string& target) {
  if (const auto older = tree.step_before_newest(); older && tamper.path.empty()) {
    if (auto found = pick(tree.of_step(tamper.role, older), tamper.rank, subject, tamper))
      return found;
  }
  const auto peers = tamper.path.empty() ? tree.current(tamper.role) : tree.matching(tamper.path);
  for (const std::string& peer : peers) {
    if (peer != target) return peer;
  }
  return fail(invalid("foreign: no other step or rank has such a file", target));
}

Result<std::string> apply_to(const Tamper& tamper, const Subject& subject, const Tree& tree,
                             const std::vector<std::string>& files, const std::string& root) {
  SAVEGATE_TRY(const std::string target, pick(files, tamper.rank, subject, tamper));
  const std::string full = root + "/" + target;
  const std::string done = std::string(tamper_name(tamper.kind)) + " " + target;
  switch (tamper.kind) {
    case Tamper::Kind::kRemove:
      if (::unlink(full.c_str()) != 0) return fail(system_error("unlink", full));
      return done;
    case Tamper::Kind::kEmpty:
      SAVEGATE_CHECK(truncate_to(full, 0));
      return done;
    case Tamper::Kind::kTruncate: {
      SAVEGATE_TRY(const std::uint64_t size, file_size(full));
      const std::uint64_t to = tamper.at == faults::Amount{} ? size / 2 : position(tamper.at, size);
      SAVEGATE_CHECK(truncate_to(full, to));
      return done + " from " + std::to_string(size) + " to " + std::to_string(to) + " bytes";
    }
    case Tamper::Kind::kFlip:
    case Tamper::Kind::kZero: {
      SAVEGATE_TRY(const std::uint64_t size, file_size(full));
      const std::uint64_t at = std::min(position(tamper.at, size), size == 0 ? 0 : size - 1);
      if (tamper.kind == Tamper::Kind::kFlip) {
        SAVEGATE_CHECK(rewrite(full, at, 1, [](char byte) { return static_cast<char>(byte ^ 1); }));
        return done + " byte " + std::to_string(at);
      }
      SAVEGATE_CHECK(rewrite(full, at, kZeroedBytes, [](char) { return '\0'; }));
      return done + " from byte " + std::to_string(at);
    }
    case Tamper::Kind::kSwap: {
      const int other = tamper.other_rank.value_or(tamper.rank + 1);
      SAVEGATE_TRY(const std::string with, pick(files, other, subject, tamper));
      SAVEGATE_CHECK(swap_files(full, root + "/" + with));
      return done + " with " + with;
    }
    case Tamper::Kind::kForeign: {
      SAVEGATE_TRY(const std::string from, find_foreign(tree, tamper, subject, target));
      SAVEGATE_TRY(const std::string content, read_file(root + "/" + from));
      SAVEGATE_CHECK(replace_file(full, content));
      return done + " is now a copy of " + from;
    }
  }
  return fail(internal_error("unknown kind of tampering"));
}

}  // namespace

Result<std::string> apply_tamper(const Tamper& tamper, const Subject& subject,
                                 const std::string& root) {
  SAVEGATE_TRY(const Tree tree, Tree::read(subject, root));
  const auto files = tamper.path.empty() ? tree.current(tamper.role) : tree.matching(tamper.path);
  return apply_to(tamper, subject, tree, files, root);
}

}  // namespace savegate::harness
