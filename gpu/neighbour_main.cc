// savegate-neighbour DEVICE RANK: another process on that rank's device. Each line of its input is
// a command, `probe` or `leave BYTES`, answered by a line: a number of bytes, or "error: …". It
// ends with its input, so with whoever writes that.

#include <signal.h>
#include <sys/prctl.h>

#include <charconv>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "gpu/neighbour.h"

namespace savegate::gpu {
namespace {

template <class Integer>
bool read_number(std::string_view text, Integer& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

Result<std::uint64_t> obey(Neighbour& neighbour, std::string_view command) {
  constexpr std::string_view kLeave = "leave ";
  if (command == "probe") return neighbour.probe();
  std::uint64_t headroom = 0;
  if (command.starts_with(kLeave) && read_number(command.substr(kLeave.size()), headroom)) {
    return neighbour.leave(headroom);
  }
  return fail(invalid("no command: " + std::string(command)));
}

void answer(const Result<std::uint64_t>& bytes) {
  std::cout << (bytes ? std::to_string(*bytes) : "error: " + bytes.error().to_string())
            << std::endl;
}

int run(std::string_view device, int rank) {
  const auto backend = open_backend(device, rank);
  if (!backend) {
    answer(fail(backend.error()));
    return 1;
  }
  Neighbour neighbour(**backend);
  for (std::string line; std::getline(std::cin, line);) answer(obey(neighbour, line));
  return 0;
}

}  // namespace
}  // namespace savegate::gpu

int main(int argc, char** argv) {
  // Also in the middle of an allocation.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  int rank = 0;
  if (argc != 3 || !savegate::gpu::read_number(argv[2], rank)) {
    std::fputs("usage: savegate-neighbour DEVICE RANK\n", stderr);
    return 2;
  }
  return savegate::gpu::run(argv[1], rank);
}
