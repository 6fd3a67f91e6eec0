#include "harness/run/files.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>

#include "harness/run/unique_fd.h"

namespace savegate::harness {

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Result<std::string> read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("open", path));
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(system_error("read", path));
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<void> write_file(const std::string& path, std::string_view content) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return fail(system_error("create", path));
  while (!content.empty()) {
    const ssize_t put = ::write(fd.get(), content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(system_error("write", path));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  SAVEGATE_CHECK(write_file(temporary, content));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return fail(system_error("rename", path));
  return {};
}

Result<void> make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(system_error("mkdir", path, error.value()));
  return {};
}

Result<void> remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return fail(system_error("unlink", path, error.value()));
  return {};
}

std::string safe_file_name(std::string_view name) {
  std::string safe;
  for (const char letter : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
                       std::string_view("._-+").find(letter) != std::string_view::npos;
    safe += plain ? letter : '-';
  }
  if (safe.size() > 200) safe.resize(200);
  if (safe.empty() || safe == "." || safe == "..") return "unnamed";
  return safe;
}

}  // namespace savegate::harness
