#include "scenarios/subjects/reference/job.h"

#include <nlohmann/json.hpp>

namespace savegate::reference {
namespace {

using Json = nlohmann::json;

template <class T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

std::optional<std::uint64_t> get(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  return found->get<std::uint64_t>();
}

}  // namespace

std::string print_vote(const Result<void>& own, const std::string& payload) {
  Json json = {{"ok", own.has_value()}};
  if (own) {
    json["payload"] = payload;
  } else {
    const Status& status = own.error();
    json["code"] = static_cast<int>(status.code);
    json["error"] = status.error;
    json["operation"] = status.operation;
    json["path"] = status.path;
    json["rank"] = status.rank;
    json["text"] = status.text;
    put(json, "offset", status.offset);
    put(json, "asked", status.asked);
    put(json, "done", status.done);
  }
  return json.dump();
}

Result<std::string> parse_vote(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.at("ok").get<bool>()) return json.at("payload").get<std::string>();
  Status status;
  status.code = static_cast<Code>(json.at("code").get<int>());
  status.error = json.at("error").get<int>();
  status.operation = json.at("operation").get<std::string>();
  status.path = json.at("path").get<std::string>();
  status.rank = json.at("rank").get<int>();
  status.text = json.at("text").get<std::string>();
  status.offset = get(json, "offset");
  status.asked = get(json, "asked");
  status.done = get(json, "done");
  return fail(std::move(status));
}

Result<void> Comms::barrier() {
  const std::uint64_t number = ++number_;
  worker_.collective_enter(name_, number, "barrier");
  if (collectives_ != nullptr) SAVEGATE_CHECK(collectives_->barrier());
  worker_.collective_exit(name_, number, "barrier");
  return {};
}

Result<std::vector<std::string>> Comms::all_gather(const std::string& own) {
  const std::uint64_t number = ++number_;
  worker_.collective_enter(name_, number, "all_gather");
  std::vector<std::string> all = {own};
  if (collectives_ != nullptr) {
    SAVEGATE_TRY(all, collectives_->all_gather_varied(own));
  }
  worker_.collective_exit(name_, number, "all_gather");
  return all;
}

// A rank that has an error of its own keeps it even if nobody can be told.
Result<Votes> vote(Comms& comms, const Result<void>& own, const std::string& payload) {
  auto texts = comms.all_gather(print_vote(own, payload));
  if (!texts) return fail(own ? texts.error() : own.error());
  Votes votes;
  votes.reserve(texts->size());
  for (const std::string& text : *texts) votes.push_back(parse_vote(text));
  return votes;
}

Result<void> first_error(const Votes& votes) {
  for (const auto& each : votes) {
    if (!each) return fail(each.error());
  }
  return {};
}

}  // namespace savegate::reference
