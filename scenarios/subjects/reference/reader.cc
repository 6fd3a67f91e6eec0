#include "scenarios/subjects/reference/reader.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "gpu/digest.h"
#include "harness/worker/event_line.h"
#include "scenarios/subjects/reference/files.h"
#include "scenarios/subjects/reference/marker.h"
#include "scenarios/subjects/reference/shard_reader.h"
#include "scenarios/subjects/reference/state_file.h"

namespace savegate::reference {
namespace {

class CheckpointReader {
 public:
  CheckpointReader(Files& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Everything is read even where something is wrong; the first error is the one that counts.
  Result<void> read() {
    SAVEGATE_TRY(const std::string text, files_.read_text(path(kMarkerName)));
    SAVEGATE_TRY(marker_, parse_marker(text, path(kMarkerName)));
    Result<void> outcome;
    if (step_name(marker_.step) != file_name(directory_)) {
      outcome = fail(invalid("the marker is that of another step", path(kMarkerName)));
    }
    for (int rank = 0; rank < marker_.world; ++rank) {
      auto read = read_rank(rank);
      if (outcome && !read) outcome = read;
    }
    const auto expected = 2 * static_cast<std::size_t>(marker_.world);
    if (outcome && marker_.files.size() != expected) {
      outcome = fail(invalid("the marker lists files of no rank", path(kMarkerName)));
    }
    return outcome;
  }

  const std::vector<std::pair<int, worker::Item>>& items() const { return items_; }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  Result<void> read_rank(int rank) {
    const std::string shard = shard_name(rank, marker_.world);
    const std::string state = state_name(rank, marker_.world);
    SAVEGATE_TRY(const std::string text, files_.read_text(path(state)));
    SAVEGATE_TRY(const StateFile file, parse_state_file(text, path(state)));
    auto same = compare({.name = state, .size = text.size(), .digest = gpu::digest_of(text).hex()});
    if (same && (file.rank != rank || file.step != marker_.step)) {
      same = fail(invalid("belongs to another rank or step", path(state)));
    }
    auto shard_read = read_shard(rank, shard, file);
    for (worker::Item& item :
         small_items(file.scheduler, file.random, file.counters, marker_.contract)) {
      items_.emplace_back(rank, std::move(item));
    }
    return same ? shard_read : same;
  }

  Result<void> read_shard(int rank, const std::string& name, const StateFile& file) {
    std::map<std::string, const TensorPlace*> places;
    for (const TensorPlace& place : file.tensors) places[place.name] = &place;
    SAVEGATE_TRY(ShardReader reader, ShardReader::open(files_, path(name)));
    std::map<std::string, gpu::TreeDigest> digests;
    for (const TensorEntry& entry : reader.header().entries) digests[entry.name];
    SAVEGATE_TRY(const FileRecord found,
                 reader.read([&](const TensorEntry& entry, std::uint64_t /*at*/,
                                 const std::byte* data, std::size_t bytes) -> Result<void> {
                   digests[entry.name].update(data, bytes);
                   return {};
                 }));
    for (const TensorEntry& entry : reader.header().entries) {
      const auto place = places.find(entry.name);
      if (place == places.end()) {
        return fail(invalid("unexpected key " + entry.name, path(name)));
      }
      items_.emplace_back(
          rank, worker::Item{entry.name, place->second->kind, "shard",
                             std::string(gpu::dtype_name(entry.dtype)), place->second->global_shape,
                             entry.shape, place->second->offset, entry.end - entry.begin,
                             digests[entry.name].finish().hex()});
      places.erase(place);
    }
    if (!places.empty()) {
      return fail(invalid("missing key " + places.begin()->first, path(name)));
    }
    return compare(found);
  }

  Result<void> compare(const FileRecord& found) const {
    const FileRecord* listed = marker_.find(found.name);
    if (listed == nullptr) return fail(invalid("the marker does not list it", path(found.name)));
    if (listed->size == found.size && listed->digest == found.digest) return {};
    return fail(invalid("size or digest is not what the marker says", path(found.name)));
  }

  Files& files_;
  std::string directory_;
  Marker marker_;
  std::vector<std::pair<int, worker::Item>> items_;
};

std::string print_line(const std::string& root, const std::string& name, bool announced,
                       const Result<void>& outcome, const CheckpointReader& reader) {
  std::string error;
  if (!outcome) {
    Status status = outcome.error();
    status.path = worker::below(root, status.path);
    error = status.to_string();
  }
  std::vector<std::string> items;
  items.reserve(reader.items().size());
  for (const auto& [rank, item] : reader.items()) {
    items.push_back(fmt::format("[{},{}]", rank, worker::item_json(item)));
  }
  return fmt::format(
             R"({{"path":{},"step":{},"complete":{},"announced":{},"error":{},"items":[{}]}})",
             worker::json_string(name), step_of(name), outcome.has_value(), announced,
             worker::json_string(error), fmt::join(items, ",")) +
         "\n";
}

}  // namespace

Result<std::string> read_checkpoints(const std::string& root) {
  Files files(-1);
  SAVEGATE_TRY(const auto names, files.list(root));
  // A pointer that cannot be read announces nothing.
  const std::string pointer = files.read_text(root + "/" + kPointerName).value_or("");
  std::string lines;
  for (const std::string& name : names) {
    if (step_of(name) < 0) continue;
    CheckpointReader reader(files, fmt::format("{}/{}", root, name));
    const auto outcome = reader.read();
    lines += print_line(root, name, pointer == name + "\n", outcome, reader);
  }
  return lines;
}

}  // namespace savegate::reference
