#include "harness/cli/gpus.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace savegate::cli {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kNoDriver = 255;
constexpr int kMost = 254;  // that an exit status can tell

int count_here() {
  void* driver = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return kNoDriver;
  using Init = int (*)(unsigned);
  using Count = int (*)(int*);
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  const auto init = reinterpret_cast<Init>(::dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<Count>(::dlsym(driver, "cuDeviceGetCount"));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  int found = 0;
  if (init == nullptr || count == nullptr || init(0) != 0 || count(&found) != 0) return 0;
  return found < kMost ? found : kMost;
}

}  // namespace

Result<int> count_gpus() {
  const pid_t child = ::fork();
  if (child < 0) return fail(system_error("fork", ""));
  if (child == 0) ::_exit(count_here());
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return fail(system_error("waitpid", ""));
  if (!WIFEXITED(status)) return fail(unavailable("the GPU driver crashes when it is asked"));
  const int found = WEXITSTATUS(status);
  if (found == kNoDriver) {
    return fail(unavailable(std::string("there is no GPU driver (") + kDriver +
                            "); --device cpu works without it"));
  }
  if (found == 0) return fail(unavailable("the driver finds no GPU; --device cpu works without"));
  return found;
}

}  // namespace savegate::cli
