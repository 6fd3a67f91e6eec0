#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "reports/json_fields.h"
#include "reports/signoff.h"

namespace savegate::reports {
namespace {

using SheetJson = nlohmann::json;

constexpr const char* kUnmeasured = "not obtained";

SheetJson measured(const Measurement& value) {
  return value ? SheetJson(*value) : SheetJson(kUnmeasured);
}

SheetJson rate(const Measurement& bytes, const Measurement& one, const Measurement& other = {}) {
  const double seconds = one.value_or(0) + other.value_or(0);
  return bytes && seconds > 0 ? SheetJson(*bytes / seconds) : SheetJson(kUnmeasured);
}

SheetJson to_json(const SignedRequirement& row) {
  return {{"id", row.id},
          {"rule", row.rule},
          {"outcome", row.outcome},
          {"summary", row.summary},
          {"evidence_file", row.evidence_file},
          {"evidence", row.evidence}};
}

SheetJson to_json(const SaveRow& row) {
  return {{"life", row.life},
          {"save", row.save},
          {"rank", row.rank},
          {"bytes", measured(row.bytes)},
          {"call_seconds", measured(row.call_seconds)},
          {"durable_seconds", measured(row.durable_seconds)},
          {"bytes_per_second", rate(row.bytes, row.call_seconds, row.durable_seconds)}};
}

SheetJson to_json(const RestoreRow& row) {
  return {{"life", row.life},
          {"rank", row.rank},
          {"bytes", measured(row.bytes)},
          {"start_seconds", measured(row.start_seconds)},
          {"restore_seconds", measured(row.restore_seconds)},
          {"bytes_per_second", rate(row.bytes, row.restore_seconds)}};
}

SheetJson to_json(const CheckpointRow& row) {
  return {{"step", row.step}, {"files", row.files}, {"bytes", row.bytes}};
}

SheetJson to_json(const MemoryRow& row) {
  return {{"segment", row.segment}, {"phase", row.phase}, {"name", row.name}, {"bytes", row.bytes}};
}

template <typename Rows>
SheetJson array_of(const Rows& rows) {
  SheetJson array = SheetJson::array();
  for (const auto& row : rows) array.push_back(to_json(row));
  return array;
}

SheetJson to_json(const std::map<std::string, SignedFile>& files) {
  SheetJson object = SheetJson::object();
  for (const auto& [path, file] : files)
    object[path] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  return object;
}

std::map<std::string, SignedFile> files_from(const SheetJson& object) {
  std::map<std::string, SignedFile> files;
  for (const auto& [path, file] : object.items())
    files[path] = {file.at("bytes"), file.at("sha256")};
  return files;
}

std::string text_of(const SheetJson& json) { return faults::json_text(json, 1) + "\n"; }

}  // namespace

std::string print_json(const Signoff& signoff) {
  return text_of(
      {{"schema", kSignoffSchema},
       {"id", signoff.id},
       {"command", signoff.command},
       {"ran",
        {{"subject", signoff.subject},
         {"words", signoff.words},
         {"launcher", signoff.launcher},
         {"device", signoff.device},
         {"world", signoff.world},
         {"backing", signoff.backing},
         {"saves", signoff.saves},
         {"confidence", signoff.confidence}}},
       {"outcome", outcome_name(signoff.outcome)},
       {"provenance", signoff.provenance},
       {"versions", signoff.versions},
       {"requirements", array_of(signoff.requirements)},
       {"saves", array_of(signoff.save_rows)},
       {"restores", array_of(signoff.restore_rows)},
       {"checkpoints", array_of(signoff.checkpoints)},
       {"memory", signoff.memory.empty() ? SheetJson(kUnmeasured) : array_of(signoff.memory)},
       {"unmeasured", signoff.unmeasured},
       {"files", to_json(signoff.files)},
       {"evidence", to_json(signoff.evidence)}});
}

std::string with_seal(std::string_view json, const std::string& seal) {
  SheetJson document = SheetJson::parse(json);
  document["seal"] = seal;
  return text_of(document);
}

Result<std::pair<std::string, std::string>> split_seal(std::string_view json,
                                                       const std::string& file) {
  SAVEGATE_TRY(SheetJson document, parse_json(json, file));
  if (!document.is_object() || !document.contains("seal") || !document["seal"].is_string())
    return fail(invalid("this is no sign-off of savegate: it has no seal", file));
  const std::string seal = document["seal"];
  document.erase("seal");
  return std::pair(seal, text_of(document));
}

Result<Signoff> signoff_from_json(std::string_view text, const std::string& file) {
  SAVEGATE_TRY(const SheetJson json, parse_json(text, file));
  try {
    if (json.at("schema") != kSignoffSchema)
      return fail(invalid("this is a sign-off of another version of savegate", file));
    Signoff signoff;
    signoff.id = json.at("id");
    const SheetJson& ran = json.at("ran");
    signoff.subject = ran.at("subject");
    signoff.words = ran.at("words").get<std::vector<std::string>>();
    signoff.launcher = ran.at("launcher");
    signoff.device = ran.at("device");
    signoff.world = ran.at("world");
    signoff.backing = ran.at("backing");
    signoff.saves = ran.at("saves");
    signoff.confidence = ran.at("confidence");
    signoff.outcome =
        outcome_from_name(json.at("outcome").get<std::string>()).value_or(Outcome::kInvalid);
    signoff.provenance = json.at("provenance").get<std::map<std::string, std::string>>();
    if (json.contains("files")) signoff.files = files_from(json.at("files"));  // older ones lack it
    signoff.evidence = files_from(json.at("evidence"));
    return signoff;
  } catch (const std::exception& error) {  // of the JSON library
    return fail(invalid("this is no sign-off of savegate: " + json_problem(error), file));
  }
}

}  // namespace savegate::reports
