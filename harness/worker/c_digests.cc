#include "harness/worker/c_digests.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "gpu/backend.h"

namespace savegate::worker {
namespace {

// Below this a thread takes longer to start than to help.
constexpr std::uint64_t kBytesAThread = 4 << 20;
constexpr unsigned kMostThreads = 8;  // a host's memory is not read faster by more

std::vector<gpu::Digest> digests_of_host(std::span<const gpu::Tensor> memory) {
  std::vector<gpu::Digest> digests;
  digests.reserve(memory.size());
  for (const gpu::Tensor& range : memory) {
    const std::uint64_t bytes = range.bytes();
    const auto useful = static_cast<unsigned>(std::min<std::uint64_t>(
        bytes / kBytesAThread, std::min(kMostThreads, std::thread::hardware_concurrency())));
    digests.push_back(useful > 1 ? gpu::digest_of(range.data, bytes, useful)
                                 : gpu::digest_of(range.data, bytes));
  }
  return digests;
}

// Never destroyed: a GPU's driver may have gone before, when the program ends.
struct Backends {
  std::mutex mutex;  // guards `by_device` and every use of a backend
  std::map<std::string, std::unique_ptr<gpu::Backend>> by_device;
};
Backends& backends() {
  static auto* const all = new Backends();
  return *all;
}

Result<std::vector<gpu::Digest>> digests_of_device(const std::string& device,
                                                   std::span<const gpu::Tensor> memory) {
  const std::lock_guard lock(backends().mutex);
  std::unique_ptr<gpu::Backend>& backend = backends().by_device[device];
  if (!backend) {
    SAVEGATE_TRY(backend, gpu::open_backend(device));
  }
  return backend->digests(memory);
}

}  // namespace

Result<std::vector<gpu::Digest>> digests_on(const std::string& device,
                                            std::span<const gpu::Tensor> memory) {
  if (device == "cpu") return digests_of_host(memory);
  Result<std::vector<gpu::Digest>> digests;
  // A backend makes its device the thread's current one, which is the caller's to choose.
  std::jthread([&] { digests = digests_of_device(device, memory); }).join();
  return digests;
}

}  // namespace savegate::worker
