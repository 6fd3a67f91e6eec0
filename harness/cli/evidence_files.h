// The evidence files of a sign-off: all files of its run but the sheet's own JSON and the
// checkpoint trees.
#pragma once

#include <map>
#include <string>

#include "faults/status.h"
#include "reports/signoff.h"

namespace savegate::cli {

inline constexpr const char* kSignoffFile = "signoff.json";
inline constexpr const char* kSheetFile = "signoff.html";

// Path below the folder → size and SHA-256.
Result<std::map<std::string, reports::EvidenceFile>> evidence_files(const std::string& folder);

// A line each file that is altered, missing or added.
std::vector<std::string> differing_files(
    const std::map<std::string, reports::EvidenceFile>& signed_files,
    const std::map<std::string, reports::EvidenceFile>& present);

}  // namespace savegate::cli
