// Status and Result: what went wrong, whole, without exceptions.
//
// A Status carries the operation, the errno, the path, the rank, the offset and the bytes asked and
// done as fields; text is made at the edge by to_string(), always one line:
//
//   write: ENOSPC (No space left on device): step_2/shard-1.tmp, rank 1, offset 67108864,
//   1048576 bytes asked, 524288 done
//
//   Result<int> open_backing(const std::string& path) {
//     int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
//     if (fd < 0) return fail(system_error("open", path));
//     return fd;
//   }
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace savegate {

// What kind of failure, and so which exit code of the command line it leads to.
enum class Code : std::uint8_t {
  kSystem,  // a system call failed; Status::error has the errno            → exit 5 (or by context)
  kInvalid,      // wrong usage, plan, scenario, suite or subject                → exit 2
  kUnavailable,  // the environment lacks something: /dev/fuse, a program, space → exit 3
  kInternal,     // savegate's own fault                                         → exit 5
};

struct Status {
  Code code = Code::kInternal;
  int error = 0;                        // errno, 0 where no system call failed
  std::string operation;                // "write", "mount", "parse"
  std::string path;                     // "" where none
  int rank = -1;                        // -1 where none
  std::optional<std::uint64_t> offset;  // bytes
  std::optional<std::uint64_t> asked;   // bytes
  std::optional<std::uint64_t> done;    // bytes
  std::string text;                     // what else the reader needs, with the way out

  std::string to_string() const;
};

template <class T>
using Result = tl::expected<T, Status>;

inline tl::unexpected<Status> fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

// Code::kSystem from the current errno (or the one given).
Status system_error(std::string operation, std::string path, int error = errno);
Status invalid(std::string text, std::string path = "");
Status unavailable(std::string text, std::string path = "", int error = 0);
Status internal_error(std::string text);

// "ENOSPC"; "errno 999" for a number that has no name.
std::string errno_name(int error);
std::optional<int> errno_from_name(std::string_view name);

}  // namespace savegate

// Hand an error up: SAVEGATE_TRY(auto x, f());   or   SAVEGATE_CHECK(g());
// NOLINTBEGIN(bugprone-macro-parentheses): `decl` and `tmp` are declared, not computed with
#define SAVEGATE_CONCAT_(a, b) a##b
#define SAVEGATE_CONCAT(a, b) SAVEGATE_CONCAT_(a, b)
#define SAVEGATE_TRY_(tmp, decl, expr)                       \
  auto tmp = (expr);                                         \
  if (!tmp) return ::savegate::fail(std::move(tmp).error()); \
  decl = std::move(*tmp)
// NOLINTEND(bugprone-macro-parentheses)
#define SAVEGATE_TRY(decl, expr) SAVEGATE_TRY_(SAVEGATE_CONCAT(savegate_try_, __LINE__), decl, expr)
#define SAVEGATE_CHECK(expr)                                      \
  do {                                                            \
    if (auto savegate_check = (expr); !savegate_check)            \
      return ::savegate::fail(std::move(savegate_check).error()); \
  } while (false)
