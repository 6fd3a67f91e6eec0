// The evidence files of a sign-off: all files of its run but the sheet's own JSON and the
// checkpoint trees.
#pragma once

#include <map>
#include <string>

#include "faults/status.h"
#include "harness/run/scenario_runner.h"
#include "harness/subject.h"
#include "reports/signoff.h"

namespace savegate::cli {

inline constexpr const char* kSignoffFile = "signoff.json";
inline constexpr const char* kSheetFile = "signoff.html";

// Path below the folder → size and SHA-256.
Result<std::map<std::string, reports::SignedFile>> evidence_files(const std::string& folder);

// Of the save path's own files, in the folder of its subject.toml; none where it is a bare command.
Result<std::map<std::string, reports::SignedFile>> files_to_sign(
    const harness::Subject& subject, const harness::RunOptions& options);

// A line each file that is altered, missing or added.
std::vector<std::string> differing_files(
    const std::map<std::string, reports::SignedFile>& signed_files,
    const std::map<std::string, reports::SignedFile>& present);

}  // namespace savegate::cli
