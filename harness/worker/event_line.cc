#include "harness/worker/event_line.h"

#include <algorithm>
#include <array>

namespace savegate::worker {
namespace {

// The texts of all of them, separated by commas.
template <class Range, class Text>
std::string joined(const Range& range, Text&& text) {
  std::string all;
  for (const auto& each : range) {
    if (!all.empty()) all += ',';
    all += text(each);
  }
  return all;
}

std::string shape_json(const std::vector<std::uint64_t>& shape) {
  return '[' + joined(shape, [](std::uint64_t extent) { return std::to_string(extent); }) + ']';
}

std::string member(std::string_view name, const std::string& json) {
  return json_string(name) + ':' + json;
}

// What lies between the slashes of a path.
std::vector<std::string_view> names_of(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") names.push_back(name);
  }
  return names;
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      json += "\\u00";
      json += kDigits[static_cast<unsigned char>(c) >> 4];
      json += kDigits[static_cast<unsigned char>(c) & 15];
    } else {
      json += c;
    }
  }
  json += '"';
  return json;
}

EventLine::EventLine(std::string_view event, std::uint64_t time_ns, int rank) {
  json_ = "{" + member("event", json_string(event));
  key("time_ns");
  json_ += std::to_string(time_ns);
  key("rank");
  json_ += std::to_string(rank);
}

void EventLine::key(std::string_view name) { json_ += ',' + json_string(name) + ':'; }

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
  json_ +=
      '{' +
      joined(values,
             [](const auto& value) { return member(value.first, json_string(value.second)); }) +
      '}';
  return *this;
}

EventLine& EventLine::samples(const Samples& samples) {
  if (samples.empty()) return *this;
  key("samples");
  json_ +=
      '[' +
      joined(samples,
             [](const auto& range) {
               return '[' + std::to_string(range.first) + ',' + std::to_string(range.second) + ']';
             }) +
      ']';
  return *this;
}

EventLine& EventLine::facts(const Memory& facts) {
  key("memory");
  json_ += '{' +
           joined(facts,
                  [](const auto& fact) {
                    return member(fact.first, fact.second ? std::to_string(*fact.second) : "null");
                  }) +
           '}';
  return *this;
}

EventLine& EventLine::items(const std::vector<Item>& items) {
  if (items.empty()) return *this;
  key("items");
  json_ += '[' + joined(items, item_json) + ']';
  return *this;
}

EventLine& EventLine::error(const Status& status) {
  key("error");
  std::string json = '{' + member("text", json_string(status.to_string()));
  const auto add = [&json](std::string_view name, const std::string& value) {
    json += ',' + member(name, value);
  };
  if (status.error != 0) add("errno_name", json_string(errno_name(status.error)));
  if (status.rank >= 0) add("rank", std::to_string(status.rank));
  if (!status.path.empty()) add("path", json_string(status.path));
  if (status.offset) add("offset", std::to_string(*status.offset));
  if (status.asked) add("requested", std::to_string(*status.asked));
  if (status.done) add("returned", std::to_string(*status.done));
  json_ += json + '}';
  return *this;
}

std::string item_json(const Item& item) {
  const std::array<std::string, 9> members = {member("name", json_string(item.name)),
                                              member("kind", json_string(item.kind)),
                                              member("scope", json_string(item.scope)),
                                              member("dtype", json_string(item.dtype)),
                                              member("global_shape", shape_json(item.global_shape)),
                                              member("local_shape", shape_json(item.local_shape)),
                                              member("offset", shape_json(item.offset)),
                                              member("bytes", std::to_string(item.bytes)),
                                              member("digest", json_string(item.digest))};
  return '{' + joined(members, [](const std::string& each) { return each; }) + '}';
}

std::string below(const std::string& directory, const std::string& path) {
  const auto above = names_of(directory);
  const auto names = names_of(path);
  if (directory.starts_with('/') != path.starts_with('/') || names.size() <= above.size() ||
      !std::equal(above.begin(), above.end(), names.begin())) {
    return path;
  }
  std::string relative;
  for (std::size_t i = above.size(); i < names.size(); ++i) {
    if (!relative.empty()) relative += '/';
    relative += names[i];
  }
  return relative;
}

}  // namespace savegate::worker
