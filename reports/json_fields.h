// Reading JSON objects strictly: the first field that is missing or of another type is the error.
//
//   JsonFields fields(object, "event");
//   auto rank = fields.integer("rank", Need::kRequired);
//   auto path = fields.string("path", Need::kOptional);
//   SAVEGATE_CHECK(fields.finish());
//
// Reads after an error return defaults, so that code stays flat. An optional field may also be
// null. Include it in .cc files only: it brings in all of nlohmann/json.hpp.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "faults/status.h"

namespace savegate::reports {

enum class Need : std::uint8_t { kOptional, kRequired };

class JsonFields {
 public:
  using Json = nlohmann::json;

  // `what` begins the text of an error: "event: `rank` is no integer".
  JsonFields(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object_.is_object()) set_error("is no JSON object");
  }

  // The value, or null where it is absent (an error if required). JSON null counts as absent.
  const Json* find(std::string_view key, Need need) {
    if (object_.is_object()) {
      const auto found = object_.find(key);
      if (found != object_.end() && !found->is_null()) return &*found;
    }
    if (need == Need::kRequired) set_error(fmt::format("`{}` is missing", key));
    return nullptr;
  }

  std::string string(std::string_view key, Need need) {
    const Json* value = find(key, need);
    if (value == nullptr) return {};
    if (!value->is_string()) return wrong(key, "string"), std::string();
    return value->get<std::string>();
  }

  std::optional<std::int64_t> integer(std::string_view key, Need need) {
    const Json* value = find(key, need);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) return wrong(key, "integer"), std::nullopt;
    return value->get<std::int64_t>();
  }

  std::optional<int> small_integer(std::string_view key, Need need) {
    const auto value = integer(key, need);
    if (!value) return std::nullopt;
    if (*value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
      return wrong(key, "small integer"), std::nullopt;
    }
    return static_cast<int>(*value);
  }

  std::optional<std::uint64_t> count(std::string_view key, Need need) {
    const Json* value = find(key, need);
    if (value == nullptr) return std::nullopt;
    if (!is_count(*value)) return wrong(key, "non-negative integer"), std::nullopt;
    return value->get<std::uint64_t>();
  }

  std::optional<bool> boolean(std::string_view key, Need need) {
    const Json* value = find(key, need);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) return wrong(key, "boolean"), std::nullopt;
    return value->get<bool>();
  }

  // An empty array where it is absent.
  const Json& array(std::string_view key, Need need) {
    static const Json kEmpty = Json::array();
    const Json* value = find(key, need);
    if (value == nullptr) return kEmpty;
    if (!value->is_array()) return wrong(key, "array"), kEmpty;
    return *value;
  }

  const Json& object(std::string_view key, Need need) {
    static const Json kEmpty = Json::object();
    const Json* value = find(key, need);
    if (value == nullptr) return kEmpty;
    if (!value->is_object()) return wrong(key, "object"), kEmpty;
    return *value;
  }

  void wrong(std::string_view key, std::string_view type) {
    set_error(fmt::format("`{}` is no {}", key, type));
  }
  void set_error(const std::string& text) {
    if (!error_) error_ = invalid(what_ + ": " + text);
  }
  void set_error(Status status) {
    if (!error_) error_ = std::move(status);
  }

  bool ok() const { return !error_; }
  Result<void> finish() const {
    if (error_) return fail(*error_);
    return {};
  }

  static bool is_count(const Json& value) {
    return value.is_number_unsigned() ||
           (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  }

 private:
  const Json& object_;
  std::string what_;
  std::optional<Status> error_;
};

// The text as JSON, or an error that says so.
inline Result<nlohmann::json> parse_json(std::string_view text, const std::string& what) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return fail(invalid(what + ": no JSON"));
  return value;
}

// What the JSON library found wrong, without the name that it gives to its own error.
inline std::string json_problem(const std::exception& error) {
  const std::string_view what = error.what();
  const std::size_t end = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
  return std::string(end == what.npos ? what : what.substr(end + 2));
}

}  // namespace savegate::reports
