// The files of a checkpoint tree as they lie on disk: path, size, tree digest.
//
// The digest is that of the contract: leaves are XXH3-64 of 4 KiB blocks (seed 0), the root is
// XXH3-128 over the leaves (little endian) and the length, written as 32 hex digits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"
#include "harness/evidence.h"

namespace savegate::harness {

std::string digest_bytes(std::string_view bytes);
Result<std::string> digest_file(const std::string& path);
// Of the first `bytes` of the file; "" where it has fewer, or is not there.
Result<std::string> digest_start(const std::string& path, std::uint64_t bytes);
// What of a record stays as it is when something is added: up to the end of the last whole line,
// all of a file without any; of a JSON array everything before the bracket that closes it.
Result<std::uint64_t> bytes_to_be_kept(const std::string& path);
// Everything below `root`, in the order of paths. A root that is not there is an empty list.
Result<std::vector<FileEntry>> list_tree(const std::string& root);

}  // namespace savegate::harness
