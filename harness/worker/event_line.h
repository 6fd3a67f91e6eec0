// Event lines: one JSON object, as docs/subject-contract.md writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"
#include "harness/worker/worker.h"

namespace savegate::worker {

std::string json_string(std::string_view text);  // quoted and escaped

// Builds a line key by key, in the order of the calls.
class EventLine {
 public:
  EventLine(std::string_view event, std::uint64_t time_ns, int rank);

  EventLine& text(std::string_view key, std::string_view value);
  EventLine& number(std::string_view key, std::int64_t value);
  EventLine& boolean(std::string_view key, bool value);
  EventLine& null(std::string_view key);
  EventLine& texts(std::string_view key, const std::map<std::string, std::string>& values);
  EventLine& samples(const Samples& samples);
  EventLine& facts(const Memory& facts);
  EventLine& items(const std::vector<Item>& items);
  EventLine& error(const Status& status);
  std::string finish() const { return json_ + "}"; }

 private:
  void key(std::string_view name);

  std::string json_;
};

std::string item_json(const Item& item);

// `path` without `directory` where it lies below it.
std::string below(const std::string& directory, const std::string& path);

}  // namespace savegate::worker
