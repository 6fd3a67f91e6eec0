#include "harness/event.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "faults/json_text.h"
#include "reports/json_fields.h"

namespace savegate::harness {
namespace {

using reports::JsonFields;
using reports::Need;
using Json = nlohmann::json;
using Output = nlohmann::ordered_json;

constexpr std::array<std::string_view, 13> kNames = {
    "hello",   "resumed", "update",    "save_begin",       "save_end",
    "durable", "export",  "memory",    "collective_enter", "collective_exit",
    "phase",   "done",    "hook_error"};

std::optional<EventKind> kind_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<EventKind>(i);
  }
  return std::nullopt;
}

bool is_one_of(EventKind kind, std::initializer_list<EventKind> kinds) {
  for (const EventKind candidate : kinds) {
    if (candidate == kind) return true;
  }
  return false;
}

std::vector<std::uint64_t> read_shape(JsonFields& fields, std::string_view key) {
  std::vector<std::uint64_t> shape;
  for (const Json& extent : fields.array(key, Need::kOptional)) {
    if (!JsonFields::is_count(extent)) {
      fields.wrong(key, "array of non-negative integers");
      return {};
    }
    shape.push_back(extent.get<std::uint64_t>());
  }
  return shape;
}

// A field that is left out stays empty: whether an item says enough of itself is judged (H7), so
// that an item without a name is a finding and no broken log.
Result<Item> read_item(const Json& json) {
  JsonFields fields(json, "item");
  Item item;
  item.name = fields.string("name", Need::kOptional);
  item.kind = fields.string("kind", Need::kOptional);
  item.scope = fields.string("scope", Need::kOptional);
  item.dtype = fields.string("dtype", Need::kOptional);
  item.global_shape = read_shape(fields, "global_shape");
  item.local_shape = read_shape(fields, "local_shape");
  item.offset = read_shape(fields, "offset");
  item.bytes = fields.count("bytes", Need::kOptional).value_or(0);
  item.digest = fields.string("digest", Need::kOptional);
  SAVEGATE_CHECK(fields.finish());
  return item;
}

Output item_to_json(const Item& item) {
  return {{"name", item.name},
          {"kind", item.kind},
          {"scope", item.scope},
          {"dtype", item.dtype},
          {"global_shape", item.global_shape},
          {"local_shape", item.local_shape},
          {"offset", item.offset},
          {"bytes", item.bytes},
          {"digest", item.digest}};
}

Result<EventError> read_error(const Json& json) {
  JsonFields fields(json, "error");
  EventError error;
  error.text = fields.string("text", Need::kRequired);
  error.errno_name = fields.string("errno_name", Need::kOptional);
  error.rank = fields.small_integer("rank", Need::kOptional);
  error.path = fields.string("path", Need::kOptional);
  error.offset = fields.count("offset", Need::kOptional);
  error.requested = fields.count("requested", Need::kOptional);
  error.returned = fields.count("returned", Need::kOptional);
  SAVEGATE_CHECK(fields.finish());
  return error;
}

Output error_to_json(const EventError& error) {
  Output json = {{"text", error.text}};
  if (!error.errno_name.empty()) json["errno_name"] = error.errno_name;
  if (error.rank) json["rank"] = *error.rank;
  if (!error.path.empty()) json["path"] = error.path;
  if (error.offset) json["offset"] = *error.offset;
  if (error.requested) json["requested"] = *error.requested;
  if (error.returned) json["returned"] = *error.returned;
  return json;
}

void read_items(JsonFields& fields, Event& event) {
  for (const Json& element : fields.array("items", Need::kOptional)) {
    auto item = read_item(element);
    if (!item) return fields.set_error(item.error());
    event.items.push_back(std::move(*item));
  }
}

void read_samples(JsonFields& fields, Event& event) {
  for (const Json& range : fields.array("samples", Need::kOptional)) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() ||
        !range[1].is_number_integer() ||
        range[0].get<std::int64_t>() > range[1].get<std::int64_t>()) {
      return fields.wrong("samples", "array of [first, last] pairs, first not after last");
    }
    event.samples.emplace_back(range[0].get<std::int64_t>(), range[1].get<std::int64_t>());
  }
}

void read_memory(JsonFields& fields, Event& event) {
  for (const auto& [name, value] : fields.object("memory", Need::kRequired).items()) {
    if (value.is_null()) {
      event.memory.emplace(name, std::nullopt);
    } else if (JsonFields::is_count(value)) {
      event.memory.emplace(name, value.get<std::uint64_t>());
    } else {
      return fields.wrong("memory." + name, "non-negative integer, nor null");
    }
  }
}

void read_versions(JsonFields& fields, Event& event) {
  for (const auto& [name, value] : fields.object("versions", Need::kOptional).items()) {
    if (!value.is_string()) return fields.wrong("versions." + name, "string");
    event.versions.emplace(name, value.get<std::string>());
  }
}

Need need(bool required) { return required ? Need::kRequired : Need::kOptional; }

void read_fields(JsonFields& fields, const Json& json, Event& event) {
  using enum EventKind;
  const EventKind kind = event.kind;
  event.time_ns = fields.count("time_ns", Need::kRequired).value_or(0);
  event.rank = fields.small_integer("rank", Need::kRequired).value_or(-1);
  event.attempt = fields.small_integer("attempt", Need::kOptional).value_or(1);

  const bool has_step = is_one_of(kind, {kUpdate, kSaveBegin, kSaveEnd, kDurable, kExport});
  event.step = fields.integer("step", need(has_step));
  if (kind == kResumed && json.is_object() && !json.contains("step")) {
    fields.set_error("`step` is missing (null says that nothing was restored)");
  }
  event.save = fields.small_integer("save", Need::kOptional);
  event.ok = fields.boolean("ok", need(is_one_of(kind, {kSaveEnd, kDurable}))).value_or(true);
  if (const Json* error = fields.find("error", Need::kOptional)) {
    auto read = read_error(*error);
    if (read) {
      event.error = std::move(*read);
    } else {
      fields.set_error(read.error());
    }
  }
  read_items(fields, event);
  event.path = fields.string("path", Need::kOptional);
  const bool collective = is_one_of(kind, {kCollectiveEnter, kCollectiveExit});
  event.name =
      fields.string("name", need(collective || is_one_of(kind, {kPhase, kMemory, kHookError})));
  event.collective = fields.string("collective", need(collective));
  event.number = fields.count("number", need(collective)).value_or(0);
  event.changed = fields.boolean("changed", need(kind == kUpdate)).value_or(false);
  read_samples(fields, event);
  event.digest = fields.string("digest", need(kind == kExport));
  event.contract = fields.small_integer("contract", Need::kOptional).value_or(1);
  if (event.contract != kContract) {
    fields.set_error(
        fmt::format("contract version {}; this savegate knows {}", event.contract, kContract));
  }
  event.world = fields.small_integer("world", need(kind == kHello)).value_or(0);
  event.pid = fields.integer("pid", Need::kOptional).value_or(0);
  event.device = fields.string("device", Need::kOptional);
  read_versions(fields, event);
  if (kind == kMemory) read_memory(fields, event);
}

}  // namespace

std::string_view event_name(EventKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

Result<Event> parse_event(std::string_view line) {
  SAVEGATE_TRY(const Json json, reports::parse_json(line, "event"));
  JsonFields fields(json, "event");
  const std::string name = fields.string("event", Need::kRequired);
  SAVEGATE_CHECK(fields.finish());
  const auto kind = kind_from_name(name);
  if (!kind) return fail(invalid("event: unknown kind \"" + name + "\""));
  Event event;
  event.kind = *kind;
  read_fields(fields, json, event);
  SAVEGATE_CHECK(fields.finish());
  return event;
}

std::string print_event(const Event& event) {
  using enum EventKind;
  const EventKind kind = event.kind;
  Output json = {{"event", event_name(kind)}, {"time_ns", event.time_ns}, {"rank", event.rank}};
  if (kind != kHello && event.pid != 0) json["pid"] = event.pid;
  if (event.attempt != 1) json["attempt"] = event.attempt;
  if (event.step) {
    json["step"] = *event.step;
  } else if (kind == kResumed) {
    json["step"] = nullptr;
  }
  if (event.save) json["save"] = *event.save;
  if (is_one_of(kind, {kResumed, kSaveEnd, kDurable})) json["ok"] = event.ok;
  if (!event.path.empty()) json["path"] = event.path;
  if (event.error) json["error"] = error_to_json(*event.error);
  if (!event.name.empty()) json["name"] = event.name;
  if (is_one_of(kind, {kCollectiveEnter, kCollectiveExit})) {
    json["number"] = event.number;
    json["collective"] = event.collective;
  }
  if (kind == kUpdate) json["changed"] = event.changed;
  if (!event.samples.empty()) json["samples"] = event.samples;
  if (kind == kExport) json["digest"] = event.digest;
  if (kind == kHello) {
    json["contract"] = event.contract;
    json["world"] = event.world;
    json["pid"] = event.pid;
    json["device"] = event.device;
    if (!event.versions.empty()) json["versions"] = event.versions;
  }
  if (kind == kMemory) {
    Output memory = Output::object();
    for (const auto& [name, bytes] : event.memory) {
      memory[name] = bytes ? Output(*bytes) : Output(nullptr);
    }
    json["memory"] = std::move(memory);
  }
  if (!event.items.empty()) {
    Output items = Output::array();
    for (const Item& item : event.items) items.push_back(item_to_json(item));
    json["items"] = std::move(items);
  }
  return faults::json_text(json);
}

EventLog read_events(const std::string& path, const std::string& shown_path) {
  constexpr std::size_t kQuoted = 160;
  EventLog log;
  std::error_code none;
  const auto type = std::filesystem::status(path, none).type();
  if (type != std::filesystem::file_type::regular &&
      type != std::filesystem::file_type::not_found) {
    log.errors.push_back(shown_path + ": is no file");  // to open a FIFO would wait for ever
    return log;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return log;
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) {
    log.errors.push_back(shown_path + ": cannot be read");
    return log;
  }
  const std::string text = std::move(content).str();

  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // the rank was killed within this line
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    auto event = parse_event(line);
    if (event) {
      event->line = number;
      log.events.push_back(std::move(*event));
    } else {
      log.errors.push_back(fmt::format("{}:{}: {}: `{}{}`", shown_path, number, event.error().text,
                                       line.substr(0, kQuoted), line.size() > kQuoted ? "…" : ""));
    }
  }
  return log;
}

std::string print_item(const Item& item) { return faults::json_text(item_to_json(item)); }

Result<Item> parse_item(std::string_view json) {
  SAVEGATE_TRY(const Json value, reports::parse_json(json, "item"));
  return read_item(value);
}

}  // namespace savegate::harness
