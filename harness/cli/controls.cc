#include "harness/cli/controls.h"

#include "faults/toml.h"
#include "harness/cli/requirement_ids.h"
#include "harness/evidence.h"
#include "harness/run/files.h"

namespace savegate::cli {
namespace {

const std::vector<std::string> kStoreChanges = {"empty-fired-records", "drop-provenance",
                                                "alter-events", "empty-memory-records"};

}  // namespace

Result<std::vector<Control>> load_controls(const std::string& toml_path) {
  auto text = harness::read_file(toml_path);
  if (!text) return fail(invalid("cannot read the negative controls", toml_path));
  SAVEGATE_TRY(faults::TomlDocument document, faults::parse_toml(*text, toml_path));
  faults::TomlReader root = document.root();
  std::vector<Control> controls;
  for (faults::TomlReader& table : root.tables("control")) {
    Control control;
    control.name = table.required_string("name");
    control.breaks = table.required_string("breaks");
    control.scenario = table.required_string("scenario");
    control.subject = table.string("subject");
    control.devices = table.words("devices", harness::device_names());
    control.arguments = table.strings("arguments");
    if (table.has("store"))
      control.store = table.word("store", kStoreChanges, kStoreChanges.front());
    control.caught_by = table.words("caught_by", requirement_ids());
    if (control.caught_by.empty()) table.error_at("caught_by", "a control names who must catch it");
    control.verdict = table.word("verdict", {"FAIL", "INVALID"}, "FAIL") == "FAIL"
                          ? reports::Outcome::kFail
                          : reports::Outcome::kInvalid;
    controls.push_back(std::move(control));
  }
  SAVEGATE_CHECK(root.finish());
  return controls;
}

Result<void> alter_store(const std::string& change, const std::string& scenario_directory) {
  if (change == "drop-provenance") {
    // Rewritten together with the manifest: H4 must notice by itself, not H5 for it.
    SAVEGATE_CHECK(harness::write_file(scenario_directory + "/provenance.json", "{}\n"));
    return harness::write_manifest(scenario_directory);
  }
  if (change == "empty-fired-records") {
    SAVEGATE_CHECK(harness::write_file(scenario_directory + "/life-1/fired.jsonl", ""));
    return harness::write_manifest(scenario_directory);
  }
  if (change == "empty-memory-records") {
    SAVEGATE_CHECK(harness::write_file(scenario_directory + "/life-1/memory.jsonl", ""));
    return harness::write_manifest(scenario_directory);
  }
  if (change == "alter-events") {
    const std::string path = scenario_directory + "/life-1/events/rank-0.jsonl";
    SAVEGATE_TRY(std::string text, harness::read_file(path));
    const std::size_t at = text.find("\"changed\":true");
    if (at == std::string::npos) return fail(internal_error("no update event to alter in " + path));
    return harness::write_file(path, text.replace(at, 14, "\"changed\":null"));
  }
  return fail(internal_error("unknown change to the store: " + change));
}

}  // namespace savegate::cli
