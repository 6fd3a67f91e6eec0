// The budget of a save: what the host holds at its peak, term by term, from shard headers alone.
//
//   peak = resident + staging + page cache of the new files + sleeping copies + other processes
//
// Each term says where it comes from. One that was not obtained adds nothing, and the sum is then a
// least. A guard that counts page cache, as Ray's does, kills at limit × threshold.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"

namespace savegate::harness {

enum class Source : std::uint8_t { kMeasured, kGiven, kEstimated, kNotObtained };
std::string_view source_name(Source source);  // "not obtained"

struct Term {
  std::string name = {};
  Source source = Source::kNotObtained;
  std::uint64_t bytes = 0;
  std::string note = {};  // how it was come by
};

// What the headers and names of one checkpoint tell.
struct CheckpointSize {
  std::uint64_t files = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t tensors = 0;
  std::uint64_t expanded = 0;
  std::map<std::string, std::uint64_t> expanded_by_dtype;
  std::string not_obtained;  // why tensors are not known, "" where they are
};
// "float32 4096 2\n…": a dtype's bytes and tensors, of the `.metadata` of a torch distributed
// checkpoint.
using MetadataReader = std::function<Result<std::string>(const std::string& path)>;
// Every file below the directory counts; the headers of *.safetensors are read. torch's distributed
// checkpoints keep theirs in a pickle, which `metadata` is asked for.
Result<CheckpointSize> measure_checkpoint(const std::string& directory,
                                          const MetadataReader& metadata);

// What the caller knows better; bytes.
struct KnownTerms {
  std::optional<std::uint64_t> resident;
  std::optional<std::uint64_t> staging;
  std::optional<std::uint64_t> sleeping;
  std::optional<std::uint64_t> others;
  std::optional<std::uint64_t> limit;
  double threshold = 0.95;
};

struct Budget {
  CheckpointSize checkpoint;
  std::vector<Term> terms;
  Term limit;
  double threshold = 0;
  std::uint64_t peak() const;
  bool complete() const;          // every term is known
  std::uint64_t allowed() const;  // limit × threshold
};
Budget budget_of(CheckpointSize checkpoint, const KnownTerms& known);

}  // namespace savegate::harness
