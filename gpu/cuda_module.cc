#include "gpu/cuda_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace savegate::gpu {
namespace {

namespace fs = std::filesystem;

// The folder of the program or library that this code was linked into.
fs::path own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path file = info.dli_fname;
    if (file.is_absolute() && file.extension() == ".so") return file.parent_path();
  }
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<void*> load_module() {
  const fs::path folder = own_folder();
  const fs::path beside = folder / kCudaModule;
  const fs::path module = fs::exists(beside) ? beside : folder / ".." / "lib" / kCudaModule;
  void* handle = ::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return fail(unavailable(std::string("the cuda module cannot be loaded, which is built where "
                                        "nvcc is: ") +
                            (why == nullptr ? "no reason given" : why)));
  }
  return handle;
}

}  // namespace

// The module stays: its code is behind every object that it made.
Result<std::unique_ptr<Backend>> open_cuda(const CudaOptions& options) {
  SAVEGATE_TRY(void* handle, load_module());
  auto* open = reinterpret_cast<OpenCuda*>(::dlsym(handle, kOpenCudaSymbol));
  if (open == nullptr) {
    return fail(unavailable(std::string("the cuda module has no ") + kOpenCudaSymbol));
  }
  Result<std::unique_ptr<Backend>> opened;
  open(options, opened);
  return opened;
}

}  // namespace savegate::gpu
