#include "harness/run/rendezvous_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

namespace savegate::harness {
namespace {

constexpr int kLeast = 10'000;  // below are the well-known services
constexpr const char* kKernelsOwn = "/proc/sys/net/ipv4/ip_local_port_range";

// The first port that the kernel gives out by itself.
Result<int> first_of_the_kernel() {
  std::ifstream file(kKernelsOwn);
  int first = 0;
  if (!(file >> first)) return fail(system_error("read", kKernelsOwn, EIO));
  return first;
}

// Empty: another run has it.
Result<UniqueFd> leased(int port) {
  UniqueFd lease(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!lease) return fail(system_error("socket", ""));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "savegate-port-" + std::to_string(port);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(lease.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return lease;
  if (errno == EADDRINUSE) return UniqueFd();
  return fail(system_error("bind", "@" + name));
}

Result<bool> is_free(int port) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) return fail(system_error("socket", ""));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return true;
  if (errno == EADDRINUSE) return false;
  return fail(system_error("bind", "port " + std::to_string(port)));
}

}  // namespace

Result<RendezvousPort> RendezvousPort::lease() {
  static std::atomic<unsigned> asked{0};  // each begins where no other did just now
  SAVEGATE_TRY(const int end, first_of_the_kernel());
  const int count = std::max(end - kLeast, 0);
  for (int i = 0; i < count; ++i) {
    const auto start = static_cast<unsigned>(::getpid()) * 64 + asked++;
    const int port = kLeast + static_cast<int>(start % static_cast<unsigned>(count));
    SAVEGATE_TRY(UniqueFd lease, leased(port));
    if (!lease) continue;
    SAVEGATE_TRY(const bool free, is_free(port));
    if (free) return RendezvousPort(std::move(lease), port);
  }
  return fail(system_error("lease a port", kKernelsOwn, EADDRNOTAVAIL));
}

}  // namespace savegate::harness
