#include "harness/worker/event_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace savegate::worker {
namespace {

std::string shape_json(const std::vector<std::uint64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      json += c;
    }
  }
  json += '"';
  return json;
}

EventLine::EventLine(std::string_view event, std::uint64_t time_ns, int rank) {
  json_ = fmt::format(R"({{"event":{},"time_ns":{},"rank":{})", json_string(event), time_ns, rank);
}

void EventLine::key(std::string_view name) { json_ += fmt::format(",\"{}\":", name); }

EventLine& EventLine::text(std::string_view name, std::string_view value) {
  key(name);
  json_ += json_string(value);
  return *this;
}

EventLine& EventLine::number(std::string_view name, std::int64_t value) {
  key(name);
  json_ += std::to_string(value);
  return *this;
}

EventLine& EventLine::boolean(std::string_view name, bool value) {
  key(name);
  json_ += value ? "true" : "false";
  return *this;
}

EventLine& EventLine::null(std::string_view name) {
  key(name);
  json_ += "null";
  return *this;
}

EventLine& EventLine::texts(std::string_view name,
                            const std::map<std::string, std::string>& values) {
  if (values.empty()) return *this;
  key(name);
  std::vector<std::string> members;
  members.reserve(values.size());
  for (const auto& [each, value] : values) {
    members.push_back(fmt::format("{}:{}", json_string(each), json_string(value)));
  }
  json_ += fmt::format("{{{}}}", fmt::join(members, ","));
  return *this;
}

EventLine& EventLine::samples(const Samples& samples) {
  if (samples.empty()) return *this;
  key("samples");
  std::vector<std::string> ranges;
  ranges.reserve(samples.size());
  for (const auto& [first, last] : samples) ranges.push_back(fmt::format("[{},{}]", first, last));
  json_ += fmt::format("[{}]", fmt::join(ranges, ","));
  return *this;
}

EventLine& EventLine::facts(const Memory& facts) {
  key("memory");
  std::vector<std::string> members;
  members.reserve(facts.size());
  for (const auto& [name, value] : facts) {
    members.push_back(
        fmt::format("{}:{}", json_string(name), value ? std::to_string(*value) : "null"));
  }
  json_ += fmt::format("{{{}}}", fmt::join(members, ","));
  return *this;
}

EventLine& EventLine::items(const std::vector<Item>& items) {
  if (items.empty()) return *this;
  key("items");
  std::vector<std::string> objects;
  objects.reserve(items.size());
  for (const Item& item : items) objects.push_back(item_json(item));
  json_ += fmt::format("[{}]", fmt::join(objects, ","));
  return *this;
}

EventLine& EventLine::error(const Status& status) {
  key("error");
  std::string json = fmt::format(R"({{"text":{})", json_string(status.to_string()));
  const auto add = [&json](std::string_view name, const auto& value) {
    json += fmt::format(",\"{}\":{}", name, value);
  };
  if (status.error != 0) add("errno_name", json_string(errno_name(status.error)));
  if (status.rank >= 0) add("rank", status.rank);
  if (!status.path.empty()) add("path", json_string(status.path));
  if (status.offset) add("offset", *status.offset);
  if (status.asked) add("requested", *status.asked);
  if (status.done) add("returned", *status.done);
  json_ += json + "}";
  return *this;
}

std::string item_json(const Item& item) {
  return fmt::format(
      R"({{"name":{},"kind":{},"scope":{},"dtype":{},"global_shape":{},"local_shape":{},)"
      R"("offset":{},"bytes":{},"digest":{}}})",
      json_string(item.name), json_string(item.kind), json_string(item.scope),
      json_string(item.dtype), shape_json(item.global_shape), shape_json(item.local_shape),
      shape_json(item.offset), item.bytes, json_string(item.digest));
}

std::string below(const std::string& directory, const std::string& path) {
  if (path.size() > directory.size() + 1 && path.starts_with(directory) &&
      path[directory.size()] == '/') {
    return path.substr(directory.size() + 1);
  }
  return path;
}

}  // namespace savegate::worker
