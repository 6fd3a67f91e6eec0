#include "harness/memory_record.h"

#include "faults/json_text.h"
#include "reports/json_fields.h"

namespace savegate::harness {

using reports::JsonFields;
using reports::Need;

std::string print_memory_record(const MemoryRecord& record) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [name, value] : record.facts) {
    if (value) {
      facts[name] = *value;
    } else {
      facts[name] = nullptr;
    }
  }
  nlohmann::ordered_json json = {{"time_ns", record.time_ns},
                                 {"node", record.node},
                                 {"rank", record.rank},
                                 {"pid", record.pid},
                                 {"phase", record.phase}};
  if (record.step) json["step"] = *record.step;
  json["event_ns"] = record.event_ns;
  json["facts"] = std::move(facts);
  json["missing"] = record.missing;
  return faults::json_text(json);
}

Result<MemoryRecord> parse_memory_record(std::string_view line) {
  SAVEGATE_TRY(const nlohmann::json json, reports::parse_json(line, "memory record"));
  JsonFields fields(json, "memory record");
  MemoryRecord record;
  record.time_ns = fields.count("time_ns", Need::kRequired).value_or(0);
  record.node = fields.string("node", Need::kRequired);
  record.rank = fields.small_integer("rank", Need::kRequired).value_or(0);
  record.pid = fields.integer("pid", Need::kRequired).value_or(0);
  record.phase = fields.string("phase", Need::kRequired);
  record.step = fields.integer("step", Need::kOptional);
  record.event_ns = fields.count("event_ns", Need::kRequired).value_or(0);
  record.missing = fields.string("missing", Need::kRequired);
  const nlohmann::json* facts = fields.find("facts", Need::kRequired);
  if (facts != nullptr && !facts->is_object()) fields.wrong("facts", "object");
  SAVEGATE_CHECK(fields.finish());
  for (const auto& [name, value] : facts->items()) {
    if (value.is_number_unsigned()) {
      record.facts[name] = value.get<std::uint64_t>();
    } else if (value.is_null()) {
      record.facts[name] = std::nullopt;
    } else {
      return fail(invalid("memory record: `" + name + "` is no count"));
    }
  }
  return record;
}

std::optional<std::uint64_t> fact_of(const MemoryFacts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::nullopt : found->second;
}

}  // namespace savegate::harness
