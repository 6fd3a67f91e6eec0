#include "harness/worker/event_line.h"

#include <cstdio>

namespace savegate::worker {
namespace {

std::string shape_json(const std::vector<std::uint64_t>& shape) {
  std::string json = "[";
  for (std::uint64_t extent : shape) {
    if (json.size() > 1) json += ',';
    json += std::to_string(extent);
  }
  return json + "]";
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      json += escaped;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

EventLine::EventLine(std::string_view event, std::uint64_t time_ns, int rank) {
  json_ = "{\"event\":" + json_string(event) + ",\"time_ns\":" + std::to_string(time_ns) +
          ",\"rank\":" + std::to_string(rank);
}

void EventLine::key(std::string_view name) {
  json_ += ",\"";
  json_ += name;
  json_ += "\":";
}

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
  std::string separator = "{";
  for (const auto& [each, value] : values) {
    json_ += separator + json_string(each) + ":" + json_string(value);
    separator = ",";
  }
  json_ += "}";
  return *this;
}

EventLine& EventLine::samples(const Samples& samples) {
  if (samples.empty()) return *this;
  key("samples");
  std::string separator = "[";
  for (const auto& [first, last] : samples) {
    json_ += separator + "[" + std::to_string(first) + "," + std::to_string(last) + "]";
    separator = ",";
  }
  json_ += "]";
  return *this;
}

EventLine& EventLine::facts(const Memory& facts) {
  key("memory");
  json_ += "{";
  std::string separator;
  for (const auto& [name, value] : facts) {
    json_ += separator + json_string(name) + ":" + (value ? std::to_string(*value) : "null");
    separator = ",";
  }
  json_ += "}";
  return *this;
}

EventLine& EventLine::items(const std::vector<Item>& items) {
  if (items.empty()) return *this;
  key("items");
  std::string separator = "[";
  for (const Item& item : items) {
    json_ += separator + item_json(item);
    separator = ",";
  }
  json_ += "]";
  return *this;
}

EventLine& EventLine::error(const Status& status) {
  key("error");
  json_ += "{\"text\":" + json_string(status.to_string());
  if (status.error != 0) json_ += ",\"errno_name\":" + json_string(errno_name(status.error));
  if (status.rank >= 0) json_ += ",\"rank\":" + std::to_string(status.rank);
  if (!status.path.empty()) json_ += ",\"path\":" + json_string(status.path);
  if (status.offset) json_ += ",\"offset\":" + std::to_string(*status.offset);
  if (status.asked) json_ += ",\"requested\":" + std::to_string(*status.asked);
  if (status.done) json_ += ",\"returned\":" + std::to_string(*status.done);
  json_ += "}";
  return *this;
}

std::string item_json(const Item& item) {
  return "{\"name\":" + json_string(item.name) + ",\"kind\":" + json_string(item.kind) +
         ",\"scope\":" + json_string(item.scope) + ",\"dtype\":" + json_string(item.dtype) +
         ",\"global_shape\":" + shape_json(item.global_shape) +
         ",\"local_shape\":" + shape_json(item.local_shape) +
         ",\"offset\":" + shape_json(item.offset) + ",\"bytes\":" + std::to_string(item.bytes) +
         ",\"digest\":" + json_string(item.digest) + "}";
}

std::string below(const std::string& directory, const std::string& path) {
  if (path.size() > directory.size() + 1 && path.starts_with(directory) &&
      path[directory.size()] == '/') {
    return path.substr(directory.size() + 1);
  }
  return path;
}

}  // namespace savegate::worker
