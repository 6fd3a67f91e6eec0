#include "scenarios/subjects/reference/marker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace savegate::reference {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of(const std::vector<FileRecord>& records) {
  OrderedJson json = OrderedJson::array();
  for (const FileRecord& file : records) {
    json.push_back({{"name", file.name}, {"size", file.size}, {"digest", file.digest}});
  }
  return json;
}

// Throws what the library throws.
std::vector<FileRecord> records_of(const OrderedJson& json) {
  std::vector<FileRecord> records;
  for (const OrderedJson& file : json) {
    records.push_back({file.at("name").get<std::string>(), file.at("size").get<std::uint64_t>(),
                       file.at("digest").get<std::string>()});
  }
  return records;
}

}  // namespace

std::map<std::string, std::string> Contract::items() const {
  return {{"code", code},
          {"data", data},
          {"recipe", recipe},
          {"total_steps", std::to_string(total_steps)}};
}

Result<void> check_contract(const Contract& saved, const Contract& current) {
  const auto now = current.items();
  std::string differences;
  for (const auto& [name, value] : saved.items()) {
    if (value == now.at(name)) continue;
    differences += fmt::format("{}{} was {}, is {}", differences.empty() ? "" : "; ", name, value,
                               now.at(name));
  }
  if (differences.empty()) return {};
  Status status = invalid("the run contract differs: " + differences);
  status.operation = "check contract";
  return fail(std::move(status));
}

const FileRecord* Marker::find(const std::string& name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const FileRecord& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::string print_marker(const Marker& marker) {
  const Contract& contract = marker.contract;
  OrderedJson json = {{"format", marker.format}, {"step", marker.step}, {"world", marker.world}};
  if (marker.format >= 2) json["expert_parallel"] = marker.expert_parallel;
  json["contract"] = {{"code", contract.code},
                      {"data", contract.data},
                      {"recipe", contract.recipe},
                      {"total_steps", contract.total_steps}};
  json["files"] = json_of(marker.files);
  return json.dump(1) + "\n";
}

Result<Marker> parse_marker(const std::string& text, const std::string& path, int newest_known) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(invalid("the marker is no JSON", path));
  // The library throws where a key is missing or of another type; nothing of that leaves here.
  try {
    Marker marker;
    json.at("format").get_to(marker.format);
    if (marker.format < 1 || marker.format > newest_known) {
      return fail(invalid(fmt::format("the checkpoint has format {}, this program reads 1 to {}",
                                      marker.format, newest_known),
                          path));
    }
    marker.step = json.at("step").get<std::int64_t>();
    marker.world = json.at("world").get<int>();
    if (marker.format >= 2) json.at("expert_parallel").get_to(marker.expert_parallel);
    const OrderedJson& contract = json.at("contract");
    contract.at("code").get_to(marker.contract.code);
    contract.at("data").get_to(marker.contract.data);
    contract.at("recipe").get_to(marker.contract.recipe);
    contract.at("total_steps").get_to(marker.contract.total_steps);
    marker.files = records_of(json.at("files"));
    return marker;
  } catch (const OrderedJson::exception& error) {
    return fail(invalid(std::string("the marker is malformed: ") + error.what(), path));
  }
}

std::string print_records(const std::vector<FileRecord>& records) {
  return json_of(records).dump();
}

Result<std::vector<FileRecord>> parse_records(const std::string& text) {
  if (text.empty()) return std::vector<FileRecord>();
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    return records_of(json);
  } catch (const OrderedJson::exception& error) {
    return fail(internal_error(std::string("file records: ") + error.what()));
  }
}

std::string step_name(std::int64_t step) { return fmt::format("step_{:08d}", step); }

std::int64_t step_of(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with("step_")) return -1;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + 5, end, step);
  if (parsed.ec != std::errc() || parsed.ptr != end || step_name(step) != name) return -1;
  return step;
}

std::string shard_name(int rank, int world) {
  return fmt::format("shard-{:05d}-of-{:05d}.safetensors", rank, world);
}

std::string state_name(int rank, int world) {
  return fmt::format("state-{:05d}-of-{:05d}.json", rank, world);
}

}  // namespace savegate::reference
