#include "scenarios/subjects/reference/restore.h"

#include <algorithm>
#include <map>

#include "gpu/digest.h"
#include "scenarios/subjects/reference/second_set.h"

namespace savegate::reference {

std::string Restorer::resolved_path() const { return job_.path(name_); }

Status Restorer::refusal(const std::string& name, const std::string& text) const {
  Status status = invalid(text, name.empty() ? resolved_path() : path(name));
  status.operation = "restore";
  status.rank = job_.rank;
  return status;
}

Result<std::optional<std::int64_t>> Restorer::restore(State& state) {
  SAVEGATE_CHECK(agree(find(state)));
  if (name_ == kNoCheckpoint) {
    SAVEGATE_CHECK(state.start(job_.backend, job_.rank));
    return std::nullopt;
  }
  if (job_.through_copy) {
    SAVEGATE_CHECK(load_through_copy(state));
  } else {
    SAVEGATE_CHECK(agree(load(state)));
  }
  return marker_.step;
}

// The state becomes the loaded one when every rank has all of its own.
Result<void> Restorer::load_through_copy(State& state) {
  job_.worker.phase("copy");
  auto copy = second_set(job_.backend, state);
  SAVEGATE_CHECK(agree(copy ? load(*copy) : fail(copy.error())));
  state = std::move(*copy);
  return give_cache_back();
}

Result<void> Restorer::give_cache_back() { return job_.backend.trim(); }

Result<void> Restorer::find(const State& state) {
  SAVEGATE_TRY(name_, resolve());
  if (name_ == kNoCheckpoint) return {};
  if (step_of(name_) < 0) {
    name_.clear();
    Status status = invalid("the pointer names no checkpoint", job_.path(kPointerName));
    status.operation = "restore";
    status.rank = job_.rank;
    return fail(std::move(status));
  }
  return check(state);
}

// A pointer that is missing is an error: a fresh start writes one that says "none".
Result<std::string> Restorer::resolve() {
  SAVEGATE_TRY(std::string text, job_.files.read_text(job_.path(kPointerName)));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<Marker> Restorer::read_marker() {
  SAVEGATE_TRY(const std::string text, job_.files.read_text(path(kMarkerName)));
  return parse_marker(text, path(kMarkerName), job_.format);
}

Result<void> Restorer::check(const State& state) {
  SAVEGATE_TRY(marker_, read_marker());
  if (step_name(marker_.step) != name_) {
    return fail(refusal(kMarkerName, "the marker is that of step " + std::to_string(marker_.step)));
  }
  if (marker_.world != job_.world) {
    return fail(refusal(kMarkerName, "saved by a world of " + std::to_string(marker_.world) +
                                         " ranks, this one has " + std::to_string(job_.world)));
  }
  if (marker_.expert_parallel != job_.expert_parallel) {
    return fail(refusal(kMarkerName, "saved with an expert parallel size of " +
                                         std::to_string(marker_.expert_parallel) +
                                         ", this run has " + std::to_string(job_.expert_parallel)));
  }
  SAVEGATE_CHECK(check_run(marker_));
  const std::string shard = shard_name(job_.rank, job_.world);
  SAVEGATE_CHECK(check_file(shard));
  SAVEGATE_CHECK(check_file(state_name(state_file_rank(), job_.world)));
  SAVEGATE_TRY(const ShardReader reader, ShardReader::open(job_.files, path(shard)));
  return check_names(reader.header(), state);
}

Result<void> Restorer::check_run(const Marker& marker) {
  auto checked = check_contract(marker.contract, job_.contract);
  if (checked) return {};
  Status status = checked.error();
  status.path = path(kMarkerName);
  status.rank = job_.rank;
  return fail(std::move(status));
}

Result<FileRecord> Restorer::listed(const std::string& name) const {
  const FileRecord* record = marker_.find(name);
  if (record == nullptr) return fail(refusal(name, "the marker does not list it"));
  return *record;
}

Result<void> Restorer::check_file(const std::string& name) {
  SAVEGATE_TRY(const FileRecord record, listed(name));
  SAVEGATE_TRY(const int fd, job_.files.open(path(name)));
  auto size = job_.files.size(fd, path(name));
  SAVEGATE_CHECK(job_.files.close(fd, path(name)));
  if (!size) return fail(size.error());
  return compare(record, {.name = name, .size = *size, .digest = record.digest});
}

Result<void> Restorer::compare(const FileRecord& listed, const FileRecord& found) {
  if (found.size != listed.size) {
    return fail(refusal(found.name, "has " + std::to_string(found.size) +
                                        " bytes, the marker says " + std::to_string(listed.size)));
  }
  if (found.digest != listed.digest) {
    return fail(
        refusal(found.name, "has digest " + found.digest + ", the marker says " + listed.digest));
  }
  return {};
}

// Strict: the tensors of the file are those of the model, no fewer, no more, no others.
Result<void> Restorer::check_names(const TensorHeader& header, const State& state) {
  const std::string shard = shard_name(job_.rank, job_.world);
  std::map<std::string, const gpu::Tensor*> expected;
  for (const NamedTensor& named : state.tensors) expected[named.name] = &named.tensor;
  for (const TensorEntry& entry : header.entries) {
    const auto found = expected.find(entry.name);
    if (found == expected.end()) return fail(refusal(shard, "unexpected key " + entry.name));
    if (entry.dtype != found->second->dtype || entry.shape != found->second->shape) {
      return fail(refusal(shard, "key " + entry.name + " has another dtype or shape"));
    }
    expected.erase(found);
  }
  if (!expected.empty()) return fail(refusal(shard, "missing key " + expected.begin()->first));
  return {};
}

Result<void> Restorer::load(State& state) {
  SAVEGATE_CHECK(load_shard(state));
  return load_state_file(state);
}

// The digest is that of the very bytes that were loaded: what was checked is what is used.
Result<void> Restorer::load_shard(State& state) {
  const std::string name = shard_name(job_.rank, job_.world);
  SAVEGATE_TRY(const FileRecord record, listed(name));
  std::map<std::string, gpu::Tensor> targets;
  for (const NamedTensor& named : state.tensors) targets[named.name] = named.tensor;
  SAVEGATE_TRY(ShardReader reader, ShardReader::open(job_.files, path(name)));
  SAVEGATE_CHECK(check_names(reader.header(), state));
  SAVEGATE_TRY(const FileRecord found, reader.read([&](const TensorEntry& entry, std::uint64_t at,
                                                       const std::byte* data, std::size_t bytes) {
    return job_.backend.copy_from_host(targets.at(entry.name), at, data, bytes);
  }));
  return compare(record, found);
}

Result<void> Restorer::load_state_file(State& state) {
  const std::string name = state_name(state_file_rank(), job_.world);
  SAVEGATE_TRY(const FileRecord record, listed(name));
  SAVEGATE_TRY(const std::string text, job_.files.read_text(path(name)));
  SAVEGATE_CHECK(
      compare(record, {.name = name, .size = text.size(), .digest = gpu::digest_of(text).hex()}));
  SAVEGATE_TRY(const StateFile file, parse_state_file(text, path(name)));
  if (file.step != marker_.step || file.rank != state_file_rank() || file.world != job_.world) {
    return fail(refusal(name, "belongs to step " + std::to_string(file.step) + ", rank " +
                                  std::to_string(file.rank)));
  }
  return adopt(state, file);
}

Result<void> Restorer::adopt(State& state, const StateFile& file) {
  const auto streams = fresh_random(job_.rank);
  if (!std::equal(streams.begin(), streams.end(), file.random.begin(), file.random.end(),
                  [](const auto& a, const auto& b) { return a.name == b.name; })) {
    return fail(refusal(state_name(file.rank, file.world), "lacks a random number stream"));
  }
  state.scheduler = file.scheduler;
  state.random = file.random;
  state.counters = file.counters;
  return {};
}

Result<void> Restorer::agree(const Result<void>& own) {
  SAVEGATE_TRY(const Votes votes, vote(job_.comms, own, name_));
  SAVEGATE_CHECK(first_error(votes));
  for (const auto& each : votes) {
    if (*each != *votes.front()) {
      return fail(
          refusal("", "ranks resolved different checkpoints: " + *votes.front() + " and " + *each));
    }
  }
  return {};
}

}  // namespace savegate::reference
