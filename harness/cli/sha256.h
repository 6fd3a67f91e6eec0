// SHA-256 (OpenSSL's), as 64 hex digits.
#pragma once

#include <string>
#include <string_view>

#include "faults/status.h"
#include "reports/signoff.h"

namespace savegate::cli {

std::string sha256(std::string_view bytes);
Result<reports::SignedFile> sha256_of_file(const std::string& path);

}  // namespace savegate::cli
