#include "faults/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

constexpr std::string_view kPath = "path";
constexpr std::string_view kRank = "rank";

const Preset* find(std::string_view name) {
  for (const Preset& preset : all_presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

Result<const Preset*> known(std::string_view name) {
  if (const Preset* preset = find(name)) return preset;
  std::vector<std::string> valid;
  for (const Preset& preset : all_presets()) valid.emplace_back(preset.name);
  std::string hint = did_you_mean(name, valid);
  if (hint.empty()) hint = fmt::format("; valid: {}", fmt::join(valid, ", "));
  return fail(invalid(fmt::format("there is no preset `{}`{}", name, hint)));
}

Result<void> check_values(const Preset& preset, const PresetValues& values) {
  std::vector<std::string> valid;
  for (const PresetParameter& parameter : preset.parameters) valid.emplace_back(parameter.name);
  valid.emplace_back(kPath);
  valid.emplace_back(kRank);
  for (const auto& [name, value] : values) {
    if (std::find(valid.begin(), valid.end(), name) == valid.end()) {
      std::string hint = did_you_mean(name, valid);
      if (hint.empty()) hint = fmt::format("; valid: {}", fmt::join(valid, ", "));
      return fail(
          invalid(fmt::format("the preset `{}` has no parameter `{}`{}", preset.name, name, hint)));
    }
    if (value.find_first_of("\"\\\n") != std::string::npos) {
      return fail(
          invalid(fmt::format("`{}` of the preset `{}` cannot have quotes, backslashes or "
                              "line ends",
                              name, preset.name)));
    }
  }
  return {};
}

std::string with_values(const Preset& preset, const PresetValues& values) {
  std::string toml(preset.toml);
  for (const PresetParameter& parameter : preset.parameters) {
    const auto given = values.find(parameter.name);
    const std::string_view value = given == values.end() ? parameter.otherwise : given->second;
    const std::string mark = fmt::format("${{{}}}", parameter.name);
    for (std::size_t at = 0; (at = toml.find(mark, at)) != std::string::npos; at += value.size()) {
      toml.replace(at, mark.size(), value);
    }
  }
  return toml;
}

Result<void> narrow(Plan& plan, const PresetValues& values) {
  if (const auto path = values.find(kPath); path != values.end()) {
    for (Rule& rule : plan.rules) rule.match.path = path->second;
    for (BudgetSpec& budget : plan.budgets) budget.path = path->second;
  }
  const auto rank = values.find(kRank);
  if (rank == values.end()) return {};
  if (!plan.budgets.empty()) {
    return fail(invalid("a budget is shared by all ranks: `rank` does not apply to this preset"));
  }
  int number = -1;
  const std::string& text = rank->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < 0) {
    return fail(invalid(fmt::format("`rank`: `{}` is no rank", text)));
  }
  for (Rule& rule : plan.rules) rule.match.ranks = {number};
  return {};
}

}  // namespace

const std::vector<Preset>& all_presets() {
  static const std::vector<Preset> presets = {
      {.name = "full-disk",
       .summary = "The file system has room for so many bytes and is full then: ENOSPC.",
       .system = "A scratch disk, a tmpfs, a volume that the checkpoints of a week fill.",
       .parameters = {{"limit", "1GiB", "bytes that fit, those that are there included"}},
       .toml = R"([[budget]]
name  = "full-disk"
limit = "${limit}"
errno = "ENOSPC"
)"},
      {.name = "quota",
       .summary = "The user's quota is used up after so many bytes: EDQUOT.",
       .system = "Home and project folders on NFS, Lustre and GPFS. Others still find space.",
       .parameters = {{"limit", "1GiB", "bytes that fit, those that are there included"}},
       .toml = R"([[budget]]
name  = "quota"
limit = "${limit}"
errno = "EDQUOT"
)"},
      {.name = "nfs",
       .summary = "Each rank is an NFS client: what others do is seen late, errors come at close.",
       .system =
           "NFS with its usual options: attributes are cached for acregmin, names and folders for "
           "acdirmin, opening a file asks the server again (close-to-open), and a write that the "
           "server refuses is told at close.",
       .parameters = {{"attributes", "3s", "acregmin: how late sizes and attributes are seen"},
                      {"names", "30s", "acdirmin: how late names and listings are seen"},
                      {"refused", "0.01", "probability that a write's error comes at close"},
                      {"errno", "EDQUOT", "that error"}},
       .toml = R"([[rule]]
name     = "nfs: sizes and attributes come from a cache"
action   = { stale = ["size", "attributes"], for = "${attributes}" }
required = false

[[rule]]
name     = "nfs: names and listings come from a cache"
action   = { stale = ["name", "listing", "negative"], for = "${names}" }
required = false

[[rule]]
name     = "nfs: a write's error comes at close"
match    = { op = "write", probability = ${refused} }
action   = { errno = "${errno}", late = "close" }
required = false
)"},
      {.name = "lustre-stripe-hang",
       .summary = "One stripe of the files does not answer; the rest does.",
       .system =
           "Lustre with an object server that is down: what lies on it waits until it is back, "
           "names and other stripes go on. `savegate ctl release` brings it back.",
       .parameters = {{"from", "1MiB", "first byte of the stripe"},
                      {"to", "2MiB", "end of the stripe"}},
       .toml = R"([[rule]]
name   = "lustre-stripe-hang"
match  = { op = ["read", "write"], offset = ["${from}", "${to}"] }
action = { hang = true }
)"},
      {.name = "object-store",
       .summary = "Neither rename nor links, modes, owners or extended attributes.",
       .system = "FUSE mounts of S3 and the like. Their refusal of writes that are not in order is "
                 "not shown.",
       .parameters = {},
       .toml = R"([[rule]]
name   = "object-store"
action = { missing = ["rename", "hard-link", "symlink", "chmod", "chown", "xattr", "fallocate"] }
)"},
      {.name = "failing-disk",
       .summary = "Reads and writes that begin in one range of a file fail: EIO.",
       .system = "A disk with bad blocks, always the same ones.",
       .parameters = {{"from", "64KiB", "first byte of the range"},
                      {"to", "128KiB", "end of the range"}},
       .toml = R"([[rule]]
name   = "failing-disk"
match  = { op = ["read", "write"], offset = ["${from}", "${to}"] }
action = { errno = "EIO" }
)"},
      {.name = "slow-disk",
       .summary = "All reads and writes share one slow link, and every fsync takes a while.",
       .system = "A cheap volume, a throttled cloud disk, a storage server that all jobs share.",
       .parameters = {{"bandwidth", "100MiB/s", "of all ranks together"},
                      {"sync", "50ms", "that each fsync takes beyond its own time"}},
       .toml = R"([[rule]]
name   = "slow-disk"
match  = { op = ["read", "write"] }
action = { bandwidth = "${bandwidth}" }

[[rule]]
name     = "slow-disk: fsync"
match    = { op = "fsync" }
action   = { delay = "${sync}" }
required = false
)"},
      {.name = "fsyncgate",
       .summary =
           "The first fsync of each file fails and drops what was written; the next succeeds.",
       .system =
           "Linux file systems whose disk fails under write-back: the pages that could not be "
           "written are marked clean, so that a second fsync finds nothing to do. PostgreSQL "
           "lost data so until 2018.",
       .parameters = {{"errno", "EIO", "what the first fsync says"}},
       .toml = R"([[rule]]
name   = "fsyncgate"
match  = { op = "fsync", nth = 1, per = "file" }
action = { errno = "${errno}", drop = true }
)"},
      {.name = "read-only-remount",
       .summary = "After so many bytes the file system is read-only: EROFS.",
       .system = "ext4 with errors=remount-ro: at the first error of the disk it turns read-only "
                 "under the programs that use it. Opening a file for writing still succeeds here; "
                 "its first write fails.",
       .parameters = {{"after", "64MiB", "bytes written before, by all together"}},
       .toml = R"([[rule]]
name   = "read-only-remount"
match  = { op = ["metadata", "write", "fallocate", "copy_file_range"], after_bytes = "${after}", per = "rule" }
action = { errno = "EROFS" }
)"},
      {.name = "no-direct-io",
       .summary = "Files cannot be opened with O_DIRECT: EINVAL.",
       .system = "tmpfs before Linux 6.6, encrypted folders, some FUSE mounts.",
       .parameters = {},
       .toml = R"([[rule]]
name   = "no-direct-io"
action = { missing = "direct-io" }
)"},
  };
  return presets;
}

Result<std::string> preset_toml(std::string_view name, const PresetValues& values) {
  SAVEGATE_TRY(const Preset* preset, known(name));
  SAVEGATE_CHECK(check_values(*preset, values));
  return with_values(*preset, values);
}

Result<Plan> preset_plan(std::string_view name, const PresetValues& values) {
  SAVEGATE_TRY(const std::string toml, preset_toml(name, values));
  SAVEGATE_TRY(Plan plan, parse_plan(toml, fmt::format("preset {}", name)));
  SAVEGATE_CHECK(narrow(plan, values));
  return plan;
}

Result<Plan> preset_from_words(std::string_view words) {
  const std::size_t colon = words.find(':');
  const std::string_view name = words.substr(0, colon);
  PresetValues values;
  std::string_view rest = colon == std::string_view::npos ? "" : words.substr(colon + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view pair = rest.substr(0, comma);
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      return fail(invalid(fmt::format("`{}` is not NAME=VALUE", pair)));
    }
    values[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return preset_plan(name, values);
}

}  // namespace savegate::faults
