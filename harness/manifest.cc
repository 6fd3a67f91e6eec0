#include "harness/manifest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "faults/json_text.h"
#include "harness/evidence.h"
#include "reports/json_fields.h"

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;
using reports::JsonFields;
using reports::Need;
using Json = nlohmann::json;

struct FileDigest {
  std::uint64_t bytes = 0;
  std::string digest;
  bool operator==(const FileDigest&) const = default;
};

Result<FileDigest> digest_of(const std::string& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (state == nullptr) return fail(internal_error("no memory for a digest"));
  XXH3_128bits_reset(state.get());

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr) return fail(system_error("open", path));
  std::vector<char> buffer(std::size_t{1} << 20);
  FileDigest result;
  while (true) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (got == 0) break;
    XXH3_128bits_update(state.get(), buffer.data(), got);
    result.bytes += got;
  }
  if (std::ferror(file.get()) != 0) return fail(system_error("read", path));

  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  for (const unsigned char byte : canonical.digest) result.digest += fmt::format("{:02x}", byte);
  return result;
}

// work/ is what the next life goes on using, scene/ what is kept of a failure after judging, and a
// trace for Perfetto is made from the rest.
bool is_evidence(const std::string& path) {
  for (const std::string_view other :
       {"manifest.json", "result.json", "work", "scene", "trace.perfetto.json"}) {
    if (path == other) return false;
  }
  return true;
}

// Path below the directory → what it holds now.
Result<std::map<std::string, FileDigest>> survey(const std::string& directory) {
  std::map<std::string, FileDigest> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  const fs::recursive_directory_iterator end;
  while (!error && entry != end) {
    const std::string path = entry->path().lexically_relative(directory).generic_string();
    if (!is_evidence(path)) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error) && !error) {
      SAVEGATE_TRY(files[path], digest_of(entry->path().string()));
    }
    if (!error) entry.increment(error);
  }
  if (error) return fail(system_error("list", directory, error.value()));
  return files;
}

Result<std::map<std::string, FileDigest>> read_manifest(const std::string& directory) {
  const std::string path = directory + "/manifest.json";
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(invalid("manifest.json is missing"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  SAVEGATE_TRY(const Json json, reports::parse_json(text, "manifest.json"));
  if (!json.is_object()) return fail(invalid("manifest.json: no JSON object"));
  std::map<std::string, FileDigest> files;
  for (const auto& [name, value] : json.items()) {
    JsonFields fields(value, "manifest.json: " + name);
    FileDigest entry;
    entry.bytes = fields.count("bytes", Need::kRequired).value_or(0);
    entry.digest = fields.string("digest", Need::kRequired);
    SAVEGATE_CHECK(fields.finish());
    files.emplace(name, std::move(entry));
  }
  return files;
}

}  // namespace

Result<void> write_manifest(const std::string& scenario_directory) {
  SAVEGATE_TRY(const auto files, survey(scenario_directory));
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [path, entry] : files) {
    json[path] = {{"bytes", entry.bytes}, {"digest", entry.digest}};
  }
  const std::string path = scenario_directory + "/manifest.json";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << faults::json_text(json, 1) << "\n";
  file.close();
  if (!file) return fail(system_error("write", path));
  return {};
}

std::vector<std::string> check_manifest(const std::string& scenario_directory) {
  std::vector<std::string> problems;
  const auto recorded = read_manifest(scenario_directory);
  if (!recorded) return {"manifest: " + recorded.error().text};
  const auto present = survey(scenario_directory);
  if (!present) return {"manifest: " + present.error().to_string()};

  for (const auto& [path, entry] : *recorded) {
    const auto found = present->find(path);
    if (found == present->end()) {
      problems.push_back("manifest: " + path + " is missing");
    } else if (found->second.bytes != entry.bytes) {
      problems.push_back(fmt::format("manifest: {} has {} bytes, had {} when it was collected",
                                     path, found->second.bytes, entry.bytes));
    } else if (found->second != entry) {
      problems.push_back("manifest: " + path + " was altered: digest " + found->second.digest +
                         ", was " + entry.digest);
    }
  }
  for (const auto& [path, entry] : *present) {
    if (!recorded->contains(path)) problems.push_back("manifest: " + path + " is not in it");
  }
  return problems;
}

}  // namespace savegate::harness
