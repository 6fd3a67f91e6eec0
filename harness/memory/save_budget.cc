#include "harness/memory/save_budget.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "harness/memory/cgroup.h"
#include "harness/memory/safetensors_header.h"
#include "harness/run/files.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;

// "MemTotal:       24686120 kB", in bytes.
std::optional<std::uint64_t> meminfo(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digit = text.find_first_of("0123456789", at);
  if (digit == std::string::npos) return std::nullopt;
  std::uint64_t kilobytes = 0;
  std::from_chars(text.data() + digit, text.data() + text.size(), kilobytes);
  return kilobytes * 1024;
}

Term known_or(const std::string& name, std::optional<std::uint64_t> given, Term otherwise) {
  if (given) return {.name = name, .source = Source::kGiven, .bytes = *given, .note = "as told"};
  otherwise.name = name;
  return otherwise;
}

Term estimated(const CheckpointSize& checkpoint, const std::string& note) {
  if (!checkpoint.not_obtained.empty()) return {.note = checkpoint.not_obtained};
  return {.source = Source::kEstimated, .bytes = checkpoint.expanded, .note = note};
}

Term measured_others() {
  const auto text = read_file("/proc/meminfo");
  if (!text) return {.note = "there is no /proc/meminfo"};
  const auto total = meminfo(*text, "MemTotal:");
  const auto available = meminfo(*text, "MemAvailable:");
  if (!total || !available) return {.note = "/proc/meminfo does not tell"};
  return {.source = Source::kMeasured,
          .bytes = *total - std::min(*total, *available),
          .note = "in use on this node now"};
}

Term measured_limit() {
  if (const auto place = memory_cgroup_of(::getpid())) {
    if (const auto limit = fact_of(measure_cgroup(*place), "cgroup_limit")) {
      return {.source = Source::kMeasured, .bytes = *limit, .note = "of this cgroup"};
    }
  }
  const auto text = read_file("/proc/meminfo");
  const auto total = text ? meminfo(*text, "MemTotal:") : std::nullopt;
  if (!total) return {.note = "neither a cgroup nor /proc/meminfo tells"};
  return {.source = Source::kMeasured, .bytes = *total, .note = "memory of this node"};
}

// Lines "dtype bytes tensors". Why they are none, else "".
std::string add_told(const std::string& text, CheckpointSize& size) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string dtype;
    std::uint64_t bytes = 0;
    std::uint64_t tensors = 0;
    if (!(words >> dtype >> bytes >> tensors)) return "its metadata reads as: " + line;
    size.expanded_by_dtype[dtype] += bytes;
    size.expanded += bytes;
    size.tensors += tensors;
  }
  return size.expanded_by_dtype.empty() ? "its metadata names no tensor" : "";
}

}  // namespace

std::string_view source_name(Source source) {
  switch (source) {
    case Source::kMeasured:
      return "measured";
    case Source::kGiven:
      return "given";
    case Source::kEstimated:
      return "estimated";
    case Source::kNotObtained:
      break;
  }
  return "not obtained";
}

Result<CheckpointSize> measure_checkpoint(const std::string& directory,
                                          const MetadataReader& metadata) {
  CheckpointSize size;
  std::error_code error;
  std::string pickled;
  std::uint64_t headers = 0;
  fs::recursive_directory_iterator entry(directory, error);
  const fs::recursive_directory_iterator end;
  for (; !error && entry != end; entry.increment(error)) {
    if (!entry->is_regular_file(error) || error) continue;
    const std::string path = entry->path().string();
    ++size.files;
    size.file_bytes += entry->file_size(error);
    if (entry->path().filename() == ".metadata") pickled = path;
    if (entry->path().extension() != ".safetensors") continue;
    SAVEGATE_TRY(const SafetensorsSummary summary, read_safetensors_header(path));
    ++headers;
    size.tensors += summary.tensors;
    size.expanded += summary.bytes;
    for (const auto& [dtype, bytes] : summary.bytes_by_dtype) {
      size.expanded_by_dtype[dtype] += bytes;
    }
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    return fail(invalid("there is no folder of a checkpoint here", directory));
  if (error) return fail(system_error("list", directory, error.value()));
  if (size.files == 0) return fail(invalid("there are no files in it", directory));
  if (headers > 0) return size;
  size.not_obtained = "there is no safetensors file and no torch metadata";
  if (!pickled.empty()) {
    const auto told = metadata(pickled);
    size.not_obtained = told ? add_told(*told, size) : told.error().to_string();
  }
  return size;
}

std::uint64_t Budget::peak() const {
  std::uint64_t sum = 0;
  for (const Term& term : terms) sum += term.bytes;
  return sum;
}

bool Budget::complete() const {
  return std::none_of(terms.begin(), terms.end(),
                      [](const Term& term) { return term.source == Source::kNotObtained; });
}

std::uint64_t Budget::allowed() const {
  return static_cast<std::uint64_t>(static_cast<double>(limit.bytes) * threshold);
}

Budget budget_of(CheckpointSize checkpoint, const KnownTerms& known) {
  Budget budget;
  budget.threshold = known.threshold;
  budget.terms = {
      known_or("resident", known.resident,
               estimated(checkpoint,
                         "the state itself; 0 where it is on a GPU and nothing of it is "
                         "pinned")),
      known_or("staging", known.staging,
               estimated(checkpoint, "a snapshot of it; 0 where a save writes from the state")),
      {.name = "page cache of new files",
       .source = Source::kEstimated,
       .bytes = checkpoint.file_bytes,
       .note = "as large as the files"},
      known_or("sleeping copies", known.sleeping, {.note = "not known from headers"}),
      known_or("other processes", known.others, measured_others()),
  };
  budget.limit = known_or("limit", known.limit, measured_limit());
  budget.checkpoint = std::move(checkpoint);
  return budget;
}

}  // namespace savegate::harness
