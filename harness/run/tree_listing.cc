#include "harness/run/tree_listing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "harness/run/unique_fd.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLeaf = 4096;
constexpr std::size_t kChunk = 256 * kLeaf;

// The digest of a byte sequence that comes in whole leaves, but for its last one.
class TreeDigest {
 public:
  void add(std::string_view bytes);
  std::string finish();

 private:
  void append_little_endian(std::uint64_t value);

  std::string leaves_;
  std::uint64_t length_ = 0;
};

void TreeDigest::append_little_endian(std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) leaves_ += static_cast<char>((value >> shift) & 0xff);
}

void TreeDigest::add(std::string_view bytes) {
  length_ += bytes.size();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kLeaf, bytes.size()))) {
    append_little_endian(XXH3_64bits(bytes.data(), std::min(kLeaf, bytes.size())));
  }
}

std::string TreeDigest::finish() {
  append_little_endian(length_);
  XXH128_canonical_t root;
  XXH128_canonicalFromHash(&root, XXH3_128bits(leaves_.data(), leaves_.size()));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : root.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// Fills the buffer unless the file ends first, so that a leaf is never split.
Result<std::size_t> read_full(int fd, std::vector<char>& buffer, const std::string& path) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    const ssize_t got = ::read(fd, buffer.data() + filled, buffer.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("read", path));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Result<FileEntry> describe(const fs::path& path, std::string name) {
  FileEntry entry;
  entry.path = std::move(name);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return fail(system_error("stat", path));
  if (S_ISDIR(found.st_mode)) {
    entry.type = 'd';
    return entry;
  }
  entry.size = static_cast<std::uint64_t>(found.st_size);
  if (S_ISLNK(found.st_mode)) {
    entry.type = 'l';
    std::error_code error;
    entry.digest = fs::read_symlink(path, error).string();
    if (error) return fail(system_error("readlink", path, error.value()));
    return entry;
  }
  if (S_ISREG(found.st_mode)) {
    SAVEGATE_TRY(entry.digest, digest_file(path));
  }
  return entry;
}

}  // namespace

std::string digest_bytes(std::string_view bytes) {
  TreeDigest digest;
  digest.add(bytes);
  return digest.finish();
}

Result<std::string> digest_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("open", path));
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return fail(system_error("stat", path));
  const auto size = static_cast<std::size_t>(found.st_size);
  std::vector<char> buffer(std::min(kChunk, size + kLeaf));
  TreeDigest digest;
  while (true) {
    SAVEGATE_TRY(const std::size_t filled, read_full(fd.get(), buffer, path));
    digest.add({buffer.data(), filled});
    if (filled < buffer.size()) return digest.finish();
  }
}

namespace {

constexpr std::string_view kBlank = " \t\r\n";

Result<std::string> bytes_at(int fd, std::uint64_t begin, std::uint64_t bytes,
                             const std::string& path) {
  if (::lseek(fd, static_cast<off_t>(begin), SEEK_SET) < 0)
    return fail(system_error("lseek", path));
  std::vector<char> buffer(bytes);
  SAVEGATE_TRY(const std::size_t filled, read_full(fd, buffer, path));
  return std::string(buffer.data(), filled);
}

// Where the items of an array end; nothing if the file is none.
Result<std::optional<std::uint64_t>> end_of_items(int fd, std::uint64_t size,
                                                  const std::string& path) {
  SAVEGATE_TRY(const std::string first,
               bytes_at(fd, 0, std::min<std::uint64_t>(kLeaf, size), path));
  const std::size_t opening = first.find_first_not_of(kBlank);
  if (opening == std::string::npos || first[opening] != '[') return std::nullopt;
  const std::uint64_t begin = size - std::min<std::uint64_t>(kLeaf, size);
  SAVEGATE_TRY(const std::string last, bytes_at(fd, begin, size - begin, path));
  const std::size_t closing = last.find_last_not_of(kBlank);
  if (closing == std::string::npos || last[closing] != ']') return std::nullopt;
  const std::size_t item = last.substr(0, closing).find_last_not_of(kBlank);
  return item == std::string::npos ? begin : begin + item + 1;
}

// The file's size where it has no whole line.
Result<std::uint64_t> end_of_lines(int fd, std::uint64_t size, const std::string& path) {
  std::uint64_t begin = 0;
  for (std::uint64_t end = size; end > 0; end = begin) {
    begin = end - std::min<std::uint64_t>(kChunk, end);
    SAVEGATE_TRY(const std::string part, bytes_at(fd, begin, end - begin, path));
    const std::size_t line_end = part.rfind('\n');
    if (line_end != std::string::npos) return begin + line_end + 1;
  }
  return size;
}

}  // namespace

Result<std::uint64_t> bytes_to_be_kept(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("open", path));
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return fail(system_error("fstat", path));
  const auto size = static_cast<std::uint64_t>(found.st_size);
  SAVEGATE_TRY(const std::optional<std::uint64_t> items, end_of_items(fd.get(), size, path));
  if (items) return *items;
  return end_of_lines(fd.get(), size, path);
}

Result<std::string> digest_start(const std::string& path, std::uint64_t bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return std::string();
  if (!fd) return fail(system_error("open", path));
  std::vector<char> buffer;
  TreeDigest digest;
  while (bytes > 0) {
    buffer.resize(std::min<std::uint64_t>(kChunk, bytes));
    SAVEGATE_TRY(const std::size_t filled, read_full(fd.get(), buffer, path));
    if (filled < buffer.size()) return std::string();
    digest.add({buffer.data(), filled});
    bytes -= filled;
  }
  return digest.finish();
}

Result<std::vector<FileEntry>> list_tree(const std::string& root) {
  std::vector<FileEntry> entries;
  std::error_code error;
  if (!fs::exists(root, error)) return entries;
  for (auto at = fs::recursive_directory_iterator(root, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    SAVEGATE_TRY(FileEntry entry,
                 describe(at->path(), at->path().lexically_relative(root).string()));
    entries.push_back(std::move(entry));
  }
  if (error) return fail(system_error("readdir", root, error.value()));
  std::sort(entries.begin(), entries.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  return entries;
}

}  // namespace savegate::harness
