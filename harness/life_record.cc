#include "faults/json_text.h"
#include "harness/evidence.h"
#include "reports/json_fields.h"

namespace savegate::harness {
namespace {

using reports::JsonFields;
using reports::Need;
using Json = nlohmann::json;
using Output = nlohmann::ordered_json;

Output to_json(const RankProcess& process) {
  Output json = {{"rank", process.rank},
                 {"pid", process.pid},
                 {"start_ticks", process.start_ticks},
                 {"started_ns", process.started_ns},
                 {"ended_ns", process.ended_ns}};
  if (process.exit_status) json["exit_status"] = *process.exit_status;
  if (process.signal) json["signal"] = *process.signal;
  json["kill_sent_ns"] = process.kill_sent_ns;
  json["ended_by"] = process.ended_by;
  json["waiting_in"] = process.waiting_in;
  json["log_bytes"] = process.log_bytes;
  json["log_dropped"] = process.log_dropped;
  return json;
}

Result<RankProcess> read_process(const Json& json) {
  JsonFields fields(json, "rank process");
  RankProcess process;
  process.rank = fields.small_integer("rank", Need::kRequired).value_or(0);
  process.pid = fields.integer("pid", Need::kRequired).value_or(0);
  process.start_ticks = fields.count("start_ticks", Need::kRequired).value_or(0);
  process.started_ns = fields.count("started_ns", Need::kRequired).value_or(0);
  process.ended_ns = fields.count("ended_ns", Need::kRequired).value_or(0);
  process.exit_status = fields.small_integer("exit_status", Need::kOptional);
  process.signal = fields.small_integer("signal", Need::kOptional);
  process.kill_sent_ns = fields.count("kill_sent_ns", Need::kRequired).value_or(0);
  process.ended_by = fields.string("ended_by", Need::kRequired);
  process.waiting_in = fields.string("waiting_in", Need::kRequired);
  process.log_bytes = fields.count("log_bytes", Need::kRequired).value_or(0);
  process.log_dropped = fields.count("log_dropped", Need::kRequired).value_or(0);
  if (process.exit_status && process.signal) {
    fields.set_error("`exit_status` and `signal` cannot both be there");
  }
  SAVEGATE_CHECK(fields.finish());
  return process;
}

Output to_json(const FileEntry& entry) {
  return {{"path", entry.path},
          {"type", std::string(1, entry.type)},
          {"size", entry.size},
          {"digest", entry.digest}};
}

Result<FileEntry> read_entry(const Json& json) {
  JsonFields fields(json, "file entry");
  FileEntry entry;
  entry.path = fields.string("path", Need::kRequired);
  const std::string type = fields.string("type", Need::kRequired);
  if (type.size() == 1) {
    entry.type = type.front();
  } else {
    fields.wrong("type", "single letter");
  }
  entry.size = fields.count("size", Need::kRequired).value_or(0);
  entry.digest = fields.string("digest", Need::kRequired);
  SAVEGATE_CHECK(fields.finish());
  return entry;
}

Output to_json(const RecordKept& record) {
  return {{"path", record.path},
          {"bytes", record.bytes},
          {"digest", record.digest},
          {"digest_after", record.digest_after}};
}

Result<RecordKept> read_record(const Json& json) {
  JsonFields fields(json, "record");
  RecordKept record;
  record.path = fields.string("path", Need::kRequired);
  record.bytes = fields.count("bytes", Need::kRequired).value_or(0);
  record.digest = fields.string("digest", Need::kRequired);
  record.digest_after = fields.string("digest_after", Need::kRequired);
  SAVEGATE_CHECK(fields.finish());
  return record;
}

Output to_json(const reports::FiredCount& fired) {
  return {{"life", fired.life},
          {"rule", fired.rule},
          {"required", fired.required},
          {"hits", fired.hits}};
}

Result<reports::FiredCount> read_fired(const Json& json) {
  JsonFields fields(json, "rule count");
  reports::FiredCount fired;
  fired.life = fields.small_integer("life", Need::kRequired).value_or(0);
  fired.rule = fields.string("rule", Need::kRequired);
  fired.required = fields.boolean("required", Need::kRequired).value_or(true);
  fired.hits = fields.count("hits", Need::kRequired).value_or(0);
  SAVEGATE_CHECK(fields.finish());
  return fired;
}

template <class T>
Output list_to_json(const std::vector<T>& values) {
  Output list = Output::array();
  for (const T& value : values) list.push_back(to_json(value));
  return list;
}

template <class T>
std::vector<T> read_list(JsonFields& fields, std::string_view key, Result<T> (*read)(const Json&),
                         Need need = Need::kRequired) {
  std::vector<T> values;
  for (const Json& element : fields.array(key, need)) {
    auto value = read(element);
    if (!value) {
      fields.set_error(value.error());
      return {};
    }
    values.push_back(std::move(*value));
  }
  return values;
}

std::vector<std::string> read_strings(JsonFields& fields, std::string_view key) {
  std::vector<std::string> values;
  for (const Json& element : fields.array(key, Need::kRequired)) {
    if (!element.is_string()) {
      fields.wrong(key, "array of strings");
      return {};
    }
    values.push_back(element.get<std::string>());
  }
  return values;
}

std::string print(const Output& json, int indent) { return faults::json_text(json, indent); }

// [saving rank, item]
Result<std::pair<int, Item>> read_saved_item(const Json& json) {
  if (!json.is_array() || json.size() != 2 || !json[0].is_number_integer()) {
    return fail(invalid("checkpoint: an item is no [rank, item] pair"));
  }
  SAVEGATE_TRY(Item item, parse_item(faults::json_text(json[1])));
  return std::pair<int, Item>(json[0].get<int>(), std::move(item));
}

}  // namespace

std::string print_life(const LifeRecord& life) {
  return print({{"number", life.number},
                {"started_ns", life.started_ns},
                {"ended_ns", life.ended_ns},
                {"ranks", list_to_json(life.ranks)},
                {"tree_before", list_to_json(life.tree_before)},
                {"tree_after", list_to_json(life.tree_after)},
                {"tampered", life.tampered},
                {"hogged", life.hogged},
                {"stray", life.stray},
                {"rules", list_to_json(life.rules)},
                {"hung", life.hung},
                {"first_failure_ns", life.first_failure_ns},
                {"daemon_died", life.daemon_died},
                {"reader_error", life.reader_error},
                {"trace_records", life.trace_records},
                {"directory", life.directory},
                {"records", list_to_json(life.records)}},
               1);
}

Result<LifeRecord> life_from_json(std::string_view json) {
  SAVEGATE_TRY(const Json document, reports::parse_json(json, "life"));
  JsonFields fields(document, "life");
  LifeRecord life;
  life.number = fields.small_integer("number", Need::kRequired).value_or(0);
  life.started_ns = fields.count("started_ns", Need::kRequired).value_or(0);
  life.ended_ns = fields.count("ended_ns", Need::kRequired).value_or(0);
  life.ranks = read_list(fields, "ranks", &read_process);
  life.tree_before = read_list(fields, "tree_before", &read_entry);
  life.tree_after = read_list(fields, "tree_after", &read_entry);
  life.tampered = read_strings(fields, "tampered");
  life.hogged = read_strings(fields, "hogged");
  life.stray = read_strings(fields, "stray");
  life.rules = read_list(fields, "rules", &read_fired);
  life.hung = fields.string("hung", Need::kRequired);
  life.first_failure_ns = fields.count("first_failure_ns", Need::kRequired).value_or(0);
  life.daemon_died = fields.boolean("daemon_died", Need::kRequired).value_or(false);
  life.reader_error = fields.string("reader_error", Need::kRequired);
  life.trace_records = fields.count("trace_records", Need::kRequired).value_or(0);
  life.directory = fields.string("directory", Need::kOptional);
  life.records = read_list(fields, "records", &read_record, Need::kOptional);
  SAVEGATE_CHECK(fields.finish());
  return life;
}

std::string print_checkpoint(const Checkpoint& checkpoint) {
  Output items = Output::array();
  for (const auto& [rank, item] : checkpoint.items) {
    items.push_back(Output::array({rank, Output::parse(print_item(item))}));
  }
  return print({{"path", checkpoint.path},
                {"step", checkpoint.step},
                {"complete", checkpoint.complete},
                {"announced", checkpoint.announced},
                {"error", checkpoint.error},
                {"items", std::move(items)}},
               -1);
}

Result<Checkpoint> checkpoint_from_json(std::string_view json) {
  SAVEGATE_TRY(const Json document, reports::parse_json(json, "checkpoint"));
  JsonFields fields(document, "checkpoint");
  Checkpoint checkpoint;
  checkpoint.path = fields.string("path", Need::kRequired);
  checkpoint.step = fields.integer("step", Need::kRequired).value_or(0);
  checkpoint.complete = fields.boolean("complete", Need::kRequired).value_or(false);
  checkpoint.announced = fields.boolean("announced", Need::kRequired).value_or(false);
  checkpoint.error = fields.string("error", Need::kOptional);
  for (const Json& element : fields.array("items", Need::kOptional)) {
    auto item = read_saved_item(element);
    if (!item) {
      fields.set_error(item.error());
      break;
    }
    checkpoint.items.push_back(std::move(*item));
  }
  SAVEGATE_CHECK(fields.finish());
  return checkpoint;
}

}  // namespace savegate::harness
