#include "scenarios/subjects/reference/save.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/subjects/reference/safetensors.h"
#include "scenarios/subjects/reference/second_set.h"

namespace savegate::reference {
namespace {

constexpr std::size_t kKeepNewest = 2;
constexpr std::int64_t kKeepEvery = 20;  // steps

}  // namespace

Result<void> Saver::save(const State& state) {
  state_ = &state;
  step_ = state.counters.global_step;
  records_.clear();
  auto saved = protocol();
  if (!saved) {
    abandon();
    static_cast<void>(release_copy());  // the failure before it is the one to be told
  }
  writers_.clear();
  staging_.trim();
  return saved;
}

Result<void> Saver::protocol() {
  SAVEGATE_CHECK(begin());
  job_.worker.phase("prepare");
  SAVEGATE_CHECK(agree(prepare_directory()));
  if (job_.through_copy) {
    job_.worker.phase("copy");
    SAVEGATE_CHECK(agree(take_copy()));
  }
  job_.worker.phase("write");
  auto stored = store_files();
  if (stored) {
    if (const auto released = release_copy(); !released) stored = fail(released.error());
  }
  SAVEGATE_CHECK(gather_records(stored));
  job_.worker.phase("marker");
  SAVEGATE_CHECK(agree(publish_marker()));
  job_.worker.phase("pointer");
  SAVEGATE_CHECK(agree(publish_pointer()));
  return {};
}

Result<void> Saver::begin() { return job_.comms.barrier(); }

// Uncommit first: from here to the new marker the directory is no checkpoint, so old files can
// never be taken for parts of the new one.
Result<void> Saver::prepare_directory() {
  if (!is_first()) return {};
  SAVEGATE_TRY(const bool created, job_.files.make_directory(directory()));
  if (created) return job_.files.sync_directory(job_.root);
  SAVEGATE_TRY(const bool committed, job_.files.exists(path(kMarkerName)));
  if (committed) {
    SAVEGATE_CHECK(job_.files.remove(path(kMarkerName)));
    SAVEGATE_CHECK(job_.files.sync_directory(directory()));
  }
  SAVEGATE_TRY(const auto names, job_.files.list(directory()));
  for (const std::string& name : names) SAVEGATE_CHECK(job_.files.remove(path(name)));
  return {};
}

Result<void> Saver::take_copy() {
  SAVEGATE_TRY(copy_, second_set_with_values(job_.backend, *state_));
  state_ = &copy_;
  return {};
}

Result<void> Saver::release_copy() {
  if (!job_.through_copy) return {};
  copy_.memory.clear();
  return job_.backend.trim();
}

Result<std::vector<FileRecord>> Saver::store_files() {
  SAVEGATE_CHECK(write_files());
  SAVEGATE_CHECK(settle_files());
  return written_records();
}

Result<void> Saver::write_files() {
  SAVEGATE_CHECK(write_shard());
  SAVEGATE_CHECK(write_state_file());
  for (FileWriter& writer : writers_) SAVEGATE_CHECK(writer.flush());
  return {};
}

Result<void> Saver::write_shard() {
  std::vector<TensorEntry> entries;
  entries.reserve(state_->tensors.size());
  std::uint64_t at = 0;
  for (const NamedTensor& named : state_->tensors) {
    const std::uint64_t end = at + named.tensor.bytes();
    entries.push_back({named.name, named.tensor.dtype, named.tensor.shape, at, end});
    at = end;
  }
  SAVEGATE_TRY(FileWriter writer,
               FileWriter::create(job_.files, path(shard_name(job_.rank, job_.world))));
  SAVEGATE_CHECK(writer.append(print_header(entries)));
  for (const NamedTensor& named : state_->tensors) {
    SAVEGATE_CHECK(write_tensor(writer, named.tensor));
  }
  writers_.push_back(std::move(writer));
  return {};
}

Result<void> Saver::write_state_file() {
  SAVEGATE_TRY(FileWriter writer,
               FileWriter::create(job_.files, path(state_name(job_.rank, job_.world))));
  SAVEGATE_CHECK(writer.append(print_state_file(state_file())));
  writers_.push_back(std::move(writer));
  return {};
}

Result<void> Saver::write_tensor(FileWriter& writer, const gpu::Tensor& tensor) {
  SAVEGATE_TRY(const gpu::StagingBlock block, staging_.take(kChunkBytes));
  for (std::uint64_t at = 0; at < tensor.bytes(); at += kChunkBytes) {
    const std::size_t part = std::min<std::uint64_t>(kChunkBytes, tensor.bytes() - at);
    // Marks the middle of the copy: whoever is killed there has half of it.
    const auto staging = at == 0 ? gpu::Midway([this] { job_.worker.phase("staging"); }) : nullptr;
    SAVEGATE_TRY(const auto copy,
                 job_.backend.start_copy_to_host(block.data(), tensor, at, part, staging));
    SAVEGATE_CHECK(copy->wait());
    if (at == 0) job_.worker.phase("staged");
    SAVEGATE_CHECK(writer.append(block.data(), part));
  }
  return {};
}

StateFile Saver::state_file() const { return state_file_of(*state_, job_.rank, job_.world); }

Result<void> Saver::settle_files() {
  for (FileWriter& writer : writers_) SAVEGATE_CHECK(writer.settle());
  return job_.files.sync_directory(directory());
}

std::vector<FileRecord> Saver::written_records() const {
  std::vector<FileRecord> records;
  records.reserve(writers_.size());
  for (const FileWriter& writer : writers_) records.push_back(writer.record());
  return records;
}

Result<void> Saver::gather_records(const Result<std::vector<FileRecord>>& own) {
  SAVEGATE_TRY(const auto all, own ? agree({}, print_records(*own)) : agree(fail(own.error())));
  for (const std::string& text : all) {
    SAVEGATE_TRY(const auto some, parse_records(text));
    records_.insert(records_.end(), some.begin(), some.end());
  }
  return {};
}

Result<void> Saver::publish_marker() {
  if (!is_first()) return {};
  const Marker marker{.format = job_.format,
                      .step = step_,
                      .world = job_.world,
                      .contract = job_.contract,
                      .files = records_,
                      .expert_parallel = job_.expert_parallel};
  SAVEGATE_CHECK(write_file(job_.files, path(kMarkerName), print_marker(marker)));
  return {};
}

Result<void> Saver::publish_pointer() {
  if (!is_first()) return {};
  SAVEGATE_CHECK(write_pointer(step_name(step_)));
  pointer_ = step_name(step_);
  return {};
}

// The rename is seen at once, but only the directory's sync makes it last. Where that fails the
// save has failed, so the pointer goes back to what it said.
Result<void> Saver::write_pointer(const std::string& name) {
  SAVEGATE_TRY(FileWriter writer, FileWriter::create(job_.files, job_.path(kPointerName)));
  SAVEGATE_CHECK(writer.append(name + "\n"));
  SAVEGATE_CHECK(writer.flush());
  SAVEGATE_CHECK(writer.settle());
  auto synced = job_.files.sync_directory(job_.root);
  if (synced) return {};
  static_cast<void>(write_file(job_.files, job_.path(kPointerName), pointer_ + "\n"));
  return synced;
}

void Saver::abandon() {}

Result<std::vector<std::string>> Saver::agree(const Result<void>& own, const std::string& payload) {
  SAVEGATE_TRY(const Votes votes, vote(job_.comms, own, payload));
  SAVEGATE_CHECK(judge(votes));
  std::vector<std::string> payloads;
  payloads.reserve(votes.size());
  for (const auto& each : votes) payloads.push_back(each.value_or(""));
  return payloads;
}

Result<void> Saver::rotate() {
  job_.worker.phase("rotate");
  SAVEGATE_CHECK(agree(is_first() ? delete_old(kKeepNewest) : Result<void>()));
  return {};
}

bool Saver::is_kept(std::int64_t step) const { return step % kKeepEvery == 0; }

std::string Saver::marker_of(const std::string& name) const {
  return job_.path(name) + "/" + kMarkerName;
}

// Only what has a marker is a checkpoint that this program tracks; anything else stays.
Result<void> Saver::delete_old(std::size_t keep_newest) {
  SAVEGATE_TRY(const auto names, job_.files.list(job_.root));
  std::vector<std::string> complete;
  for (const std::string& name : names) {
    if (step_of(name) < 0) continue;
    SAVEGATE_TRY(const bool committed, job_.files.exists(marker_of(name)));
    if (committed) complete.push_back(name);
  }
  if (complete.size() <= keep_newest) return {};
  complete.resize(complete.size() - keep_newest);  // sorted by name, so by step
  for (const std::string& name : complete) {
    if (!is_kept(step_of(name))) SAVEGATE_CHECK(delete_checkpoint(name));
  }
  return {};
}

// The marker goes first and for good: no marker is ever left on a directory with missing files.
Result<void> Saver::delete_checkpoint(const std::string& name) {
  const std::string old = job_.path(name);
  SAVEGATE_CHECK(job_.files.remove(marker_of(name)));
  SAVEGATE_CHECK(job_.files.sync_directory(old));
  SAVEGATE_TRY(const auto files, job_.files.list(old));
  for (const std::string& file : files) {
    SAVEGATE_CHECK(job_.files.remove(fmt::format("{}/{}", old, file)));
  }
  return job_.files.remove_directory(old);
}

}  // namespace savegate::reference
