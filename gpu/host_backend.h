// The backend of the host's own memory.
#pragma once

#include <memory>

#include "gpu/backend.h"

namespace savegate::gpu {

std::unique_ptr<Backend> open_host();

}  // namespace savegate::gpu
