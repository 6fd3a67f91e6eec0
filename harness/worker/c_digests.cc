#include "harness/worker/c_digests.h"

#include <algorithm>
#include <atomic>
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

unsigned threads_for(std::uint64_t bytes) {
  return static_cast<unsigned>(std::min<std::uint64_t>(
      bytes / kBytesAThread, std::min(kMostThreads, std::thread::hardware_concurrency())));
}

// A large range by all threads, one after the other; the others by one thread each, side by side.
std::vector<gpu::Digest> digests_of_host(std::span<const gpu::Tensor> memory) {
  std::vector<gpu::Digest> digests(memory.size());
  std::vector<std::size_t> others;
  std::uint64_t bytes_of_others = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const std::uint64_t bytes = memory[i].bytes();
    if (threads_for(bytes) > 1 && threads_for(bytes) == threads_for(UINT64_MAX)) {
      digests[i] = gpu::digest_of(memory[i].data, bytes, threads_for(bytes));
    } else {
      others.push_back(i);
      bytes_of_others += bytes;
    }
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < others.size(); at = next++) {
      const gpu::Tensor& range = memory[others[at]];
      digests[others[at]] = gpu::digest_of(range.data, range.bytes());
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (unsigned i = 1; i < threads_for(bytes_of_others); ++i) helpers.emplace_back(work);
    work();
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
