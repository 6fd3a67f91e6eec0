#include "faults/fired.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "faults/json_text.h"

namespace savegate::faults {
namespace {

using Json = nlohmann::ordered_json;

std::optional<Relation> relation_from_name(std::string_view name) {
  for (Relation relation :
       {Relation::kNone, Relation::kProcess, Relation::kThread, Relation::kChild}) {
    if (relation_name(relation) == name) return relation;
  }
  return std::nullopt;
}

// Copies a field out of the object; remembers the first that is missing or of another type.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  template <class T>
  void read(const char* name, T& into) {
    auto found = object_.find(name);
    constexpr bool kText = std::is_same_v<T, std::string>;
    if (found == object_.end() || (kText ? !found->is_string() : !found->is_number_integer())) {
      if (bad_.empty()) bad_ = name;
      return;
    }
    into = found->template get<T>();
  }
  void reject(const char* name) {
    if (bad_.empty()) bad_ = name;
  }
  const std::string& bad() const { return bad_; }

 private:
  const Json& object_;
  std::string bad_;
};

}  // namespace

std::string to_json_line(const FiredRecord& record) {
  Json json;
  json["time_ns"] = record.time_ns;
  json["seq"] = record.seq;
  json["rule"] = record.rule;
  json["hit"] = record.hit;
  json["action"] = record.action;
  json["life"] = record.life;
  json["attempt"] = record.attempt;
  json["phase"] = record.phase;
  json["rank"] = record.caller.rank;
  json["pid"] = record.caller.pid;
  json["tid"] = record.caller.tid;
  json["relation"] = relation_name(record.caller.relation);
  json["op"] = op_name(record.op);
  json["path"] = record.path;
  json["path2"] = record.path2;
  json["offset"] = record.offset;
  json["requested"] = record.requested;
  json["returned"] = record.returned;
  json["error"] = record.error == 0 ? "" : errno_name(record.error);
  json["fs_free"] = record.fs_free;
  // A path that is no UTF-8 must not lose the record: its bad bytes become U+FFFD.
  return json_text(json);
}

Result<FiredRecord> fired_from_json_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(invalid(fmt::format("no fired record: `{}`", line)));
  FiredRecord record;
  std::string relation;
  std::string op;
  std::string error;
  Fields fields(json);
  fields.read("time_ns", record.time_ns);
  fields.read("seq", record.seq);
  fields.read("rule", record.rule);
  fields.read("hit", record.hit);
  fields.read("action", record.action);
  fields.read("life", record.life);
  fields.read("attempt", record.attempt);
  fields.read("phase", record.phase);
  fields.read("rank", record.caller.rank);
  fields.read("pid", record.caller.pid);
  fields.read("tid", record.caller.tid);
  fields.read("relation", relation);
  fields.read("op", op);
  fields.read("path", record.path);
  fields.read("path2", record.path2);
  fields.read("offset", record.offset);
  fields.read("requested", record.requested);
  fields.read("returned", record.returned);
  fields.read("error", error);
  fields.read("fs_free", record.fs_free);
  if (auto known = relation_from_name(relation)) {
    record.caller.relation = *known;
  } else {
    fields.reject("relation");
  }
  if (auto known = op_from_name(op)) {
    record.op = *known;
  } else {
    fields.reject("op");
  }
  if (auto known = errno_from_name(error)) {
    record.error = *known;
  } else if (!error.empty()) {
    fields.reject("error");
  }
  if (!fields.bad().empty()) {
    return fail(
        invalid(fmt::format("fired record without a valid `{}`: `{}`", fields.bad(), line)));
  }
  return record;
}

}  // namespace savegate::faults
