#include "harness/cli/requirement_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "faults/toml.h"
#include "harness/oracles.h"

namespace savegate::cli {

const std::vector<std::string>& requirement_ids() {
  static const std::vector<std::string> kIds = [] {
    std::vector<std::string> ids;
    for (const harness::Oracle& oracle : harness::all_oracles())
      ids.emplace_back(oracle.requirement);
    return ids;
  }();
  return kIds;
}

Result<void> check_requirement_ids(const std::vector<std::string>& ids, const std::string& where) {
  const std::vector<std::string>& known = requirement_ids();
  std::set<std::string> seen;
  for (const std::string& id : ids) {
    if (!seen.insert(id).second)
      return fail(invalid(fmt::format("`{}` is there twice", id), where));
    if (std::find(known.begin(), known.end(), id) == known.end())
      return fail(invalid(fmt::format("no scenario is judged by `{}`{}; `savegate list "
                                      "requirements` shows all",
                                      id, faults::did_you_mean(id, known)),
                          where));
  }
  return {};
}

}  // namespace savegate::cli
