// For tests: as much of JSON Schema as the schemas in docs/ use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>

namespace savegate::reports {

class Schema {
 public:
  using Json = nlohmann::json;

  explicit Schema(Json document) : document_(std::move(document)) {}

  // "": the value fits.
  std::string misfit(const Json& value) const { return misfit(document_, value, ""); }

 private:
  std::string misfit(const Json& schema, const Json& value, const std::string& where) const {
    if (schema.contains("$ref")) {
      const std::string path = schema["$ref"].get<std::string>().substr(1);
      return misfit(document_.at(Json::json_pointer(path)), value, where);
    }
    if (schema.contains("const") && schema["const"] != value) return where + ": another constant";
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      return where + ": none of the words";
    }
    if (schema.contains("type") && !has_type(value, schema["type"])) return where + ": type";
    for (const Json& all : schema.value("allOf", Json::array())) {
      if (auto bad = misfit(all, value, where); !bad.empty()) return bad;
    }
    for (const char* some : {"anyOf", "oneOf"}) {
      if (!schema.contains(some)) continue;
      std::string bad;
      bool fits = false;
      for (const Json& choice : schema[some]) {
        const std::string why = misfit(choice, value, where);
        fits = fits || why.empty();
        bad += why + "; ";
      }
      if (!fits) return bad;
    }
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        return where + ": without " + name.get<std::string>();
      }
    }
    if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
      return where + ": below the minimum";
    }
    if (schema.contains("pattern") && value.is_string() &&
        !std::regex_search(value.get<std::string>(),
                           std::regex(schema["pattern"].get<std::string>()))) {
      return where + ": another pattern";
    }
    if (value.is_array() && (value.size() < schema.value("minItems", std::size_t{0}) ||
                             value.size() > schema.value("maxItems", SIZE_MAX))) {
      return where + ": too few or too many";
    }
    if (value.is_object()) return misfit_of_members(schema, value, where);
    if (value.is_array() && schema.contains("items")) {
      for (const Json& element : value) {
        if (auto bad = misfit(schema["items"], element, where + "[]"); !bad.empty()) return bad;
      }
    }
    return "";
  }

  std::string misfit_of_members(const Json& schema, const Json& value,
                                const std::string& where) const {
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      std::string at = where;
      at.append("/").append(name);
      if (properties.contains(name)) {
        if (auto bad = misfit(properties[name], member, at); !bad.empty()) return bad;
      } else if (schema.contains("additionalProperties")) {
        const Json& others = schema["additionalProperties"];
        if (others == false) return at + ": not in the schema";
        if (auto bad = misfit(others, member, at); !bad.empty()) return bad;
      }
    }
    return "";
  }

  static bool has_type(const Json& value, const std::string& type) {
    return type == "object"    ? value.is_object()
           : type == "array"   ? value.is_array()
           : type == "string"  ? value.is_string()
           : type == "integer" ? value.is_number_integer()
           : type == "boolean" ? value.is_boolean()
           : type == "null"    ? value.is_null()
                               : value.is_number();
  }

  Json document_;
};

}  // namespace savegate::reports
