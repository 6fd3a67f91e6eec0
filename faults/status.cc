#include "faults/status.h"

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

namespace savegate {
namespace {

struct ErrnoWord {
  int error;
  std::string_view name;
};

#define SAVEGATE_ERRNO(name) \
  ErrnoWord { name, #name }
// Where two names share a number (EAGAIN and EWOULDBLOCK), the first is printed.
constexpr std::array kErrnoWords = {
    SAVEGATE_ERRNO(EPERM),           SAVEGATE_ERRNO(ENOENT),       SAVEGATE_ERRNO(ESRCH),
    SAVEGATE_ERRNO(EINTR),           SAVEGATE_ERRNO(EIO),          SAVEGATE_ERRNO(ENXIO),
    SAVEGATE_ERRNO(E2BIG),           SAVEGATE_ERRNO(ENOEXEC),      SAVEGATE_ERRNO(EBADF),
    SAVEGATE_ERRNO(ECHILD),          SAVEGATE_ERRNO(EAGAIN),       SAVEGATE_ERRNO(ENOMEM),
    SAVEGATE_ERRNO(EACCES),          SAVEGATE_ERRNO(EFAULT),       SAVEGATE_ERRNO(ENOTBLK),
    SAVEGATE_ERRNO(EBUSY),           SAVEGATE_ERRNO(EEXIST),       SAVEGATE_ERRNO(EXDEV),
    SAVEGATE_ERRNO(ENODEV),          SAVEGATE_ERRNO(ENOTDIR),      SAVEGATE_ERRNO(EISDIR),
    SAVEGATE_ERRNO(EINVAL),          SAVEGATE_ERRNO(ENFILE),       SAVEGATE_ERRNO(EMFILE),
    SAVEGATE_ERRNO(ENOTTY),          SAVEGATE_ERRNO(ETXTBSY),      SAVEGATE_ERRNO(EFBIG),
    SAVEGATE_ERRNO(ENOSPC),          SAVEGATE_ERRNO(ESPIPE),       SAVEGATE_ERRNO(EROFS),
    SAVEGATE_ERRNO(EMLINK),          SAVEGATE_ERRNO(EPIPE),        SAVEGATE_ERRNO(EDOM),
    SAVEGATE_ERRNO(ERANGE),          SAVEGATE_ERRNO(EDEADLK),      SAVEGATE_ERRNO(ENAMETOOLONG),
    SAVEGATE_ERRNO(ENOLCK),          SAVEGATE_ERRNO(ENOSYS),       SAVEGATE_ERRNO(ENOTEMPTY),
    SAVEGATE_ERRNO(ELOOP),           SAVEGATE_ERRNO(ENODATA),      SAVEGATE_ERRNO(ETIME),
    SAVEGATE_ERRNO(ENOLINK),         SAVEGATE_ERRNO(ECOMM),        SAVEGATE_ERRNO(EPROTO),
    SAVEGATE_ERRNO(EBADMSG),         SAVEGATE_ERRNO(EOVERFLOW),    SAVEGATE_ERRNO(EILSEQ),
    SAVEGATE_ERRNO(EUSERS),          SAVEGATE_ERRNO(ENOTSOCK),     SAVEGATE_ERRNO(EMSGSIZE),
    SAVEGATE_ERRNO(EOPNOTSUPP),      SAVEGATE_ERRNO(EADDRINUSE),   SAVEGATE_ERRNO(EADDRNOTAVAIL),
    SAVEGATE_ERRNO(ENETDOWN),        SAVEGATE_ERRNO(ENETUNREACH),  SAVEGATE_ERRNO(ECONNABORTED),
    SAVEGATE_ERRNO(ECONNRESET),      SAVEGATE_ERRNO(ENOBUFS),      SAVEGATE_ERRNO(ENOTCONN),
    SAVEGATE_ERRNO(ESHUTDOWN),       SAVEGATE_ERRNO(ETIMEDOUT),    SAVEGATE_ERRNO(ECONNREFUSED),
    SAVEGATE_ERRNO(EHOSTDOWN),       SAVEGATE_ERRNO(EHOSTUNREACH), SAVEGATE_ERRNO(EALREADY),
    SAVEGATE_ERRNO(EINPROGRESS),     SAVEGATE_ERRNO(ESTALE),       SAVEGATE_ERRNO(EUCLEAN),
    SAVEGATE_ERRNO(EREMOTEIO),       SAVEGATE_ERRNO(EDQUOT),       SAVEGATE_ERRNO(ENOMEDIUM),
    SAVEGATE_ERRNO(EMEDIUMTYPE),     SAVEGATE_ERRNO(ECANCELED),    SAVEGATE_ERRNO(EOWNERDEAD),
    SAVEGATE_ERRNO(ENOTRECOVERABLE), SAVEGATE_ERRNO(ENOTSUP),      SAVEGATE_ERRNO(EWOULDBLOCK),
};
#undef SAVEGATE_ERRNO

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

std::string Status::to_string() const {
  std::string line;
  auto part = [&line](std::string_view separator, std::string_view words) {
    if (words.empty()) return;
    if (!line.empty()) line += separator;
    line += words;
  };
  part("", operation);
  if (error != 0) {
    std::array<char, 256> buffer{};
    const char* meaning = ::strerror_r(error, buffer.data(), buffer.size());
    part(": ", errno_name(error) + " (" + meaning + ")");
  }
  part(": ", path);
  if (rank >= 0) part(", ", "rank " + std::to_string(rank));
  if (offset) part(", ", "offset " + std::to_string(*offset));
  if (asked) part(", ", std::to_string(*asked) + " bytes asked");
  if (done) part(", ", std::to_string(*done) + (asked ? " done" : " bytes done"));
  part(": ", text);
  if (line.empty()) line = "unknown error";
  return one_line(std::move(line));
}

Status system_error(std::string operation, std::string path, int error) {
  Status status;
  status.code = Code::kSystem;
  status.error = error;
  status.operation = std::move(operation);
  status.path = std::move(path);
  return status;
}

Status invalid(std::string text, std::string path) {
  Status status;
  status.code = Code::kInvalid;
  status.path = std::move(path);
  status.text = std::move(text);
  return status;
}

Status unavailable(std::string text, std::string path, int error) {
  Status status;
  status.code = Code::kUnavailable;
  status.error = error;
  status.path = std::move(path);
  status.text = std::move(text);
  return status;
}

Status internal_error(std::string text) {
  Status status;
  status.code = Code::kInternal;
  status.text = std::move(text);
  return status;
}

std::string errno_name(int error) {
  for (const ErrnoWord& word : kErrnoWords) {
    if (word.error == error) return std::string(word.name);
  }
  return "errno " + std::to_string(error);
}

std::optional<int> errno_from_name(std::string_view name) {
  for (const ErrnoWord& word : kErrnoWords) {
    if (word.name == name) return word.error;
  }
  constexpr std::string_view kNumbered = "errno ";
  if (name.substr(0, kNumbered.size()) == kNumbered) {
    name.remove_prefix(kNumbered.size());
    int error = 0;
    auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), error);
    if (failed == std::errc() && end == name.data() + name.size() && error > 0 && error < 4096) {
      return error;
    }
  }
  return std::nullopt;
}

}  // namespace savegate
