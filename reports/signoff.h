// The sign-off sheet: what an acceptance ran, what that was bound to, and what it showed (C11, H4).
//
// signoff.json names every evidence file of its run with size and SHA-256, and seals itself with
// the SHA-256 of its own other members; docs/signoff-schema.json describes it. signoff.html is the
// same for a person to read, one file without any other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reports/result.h"

namespace savegate::reports {

inline constexpr int kSignoffSchema = 1;
inline constexpr const char* kNotMeasured = "not measured";

struct SignedRequirement {
  std::string id;
  std::string rule;                   // "" where no oracle knows it
  std::string outcome;                // "PASS", "FAIL", "INVALID" or kNotMeasured
  std::string summary;                // what was seen, or why it was not measured
  std::string evidence_file;          // below the run's folder, ""
  std::vector<std::string> evidence;  // quoted lines
};

// What one rank did in one save: the call, then, where it is asynchronous, until it was durable.
struct SaveRow {
  int life = 0;
  int save = 0;
  int rank = 0;
  Measurement bytes;  // of the state that it held
  Measurement call_seconds;
  Measurement durable_seconds;
};

struct RestoreRow {
  int life = 0;
  int rank = 0;
  Measurement bytes;
  Measurement start_seconds;    // from its launch until it said hello
  Measurement restore_seconds;  // from there until all was restored
};

struct CheckpointRow {  // as it lay on disk
  std::int64_t step = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

struct MemoryRow {
  std::string segment;      // "consecutive saves", "kill and resume"
  std::string phase;        // "save", "load" …
  std::string name;         // "host_rss_peak"
  std::uint64_t bytes = 0;  // the most of any rank
};

struct SignedFile {
  std::uint64_t bytes = 0;
  std::string sha256;
  bool operator==(const SignedFile&) const = default;
};

struct Signoff {
  std::string id;  // of the run
  std::string command;
  // What is to be looked at again when it is compared.
  std::string subject;             // a name or an absolute path; "" where a command is given
  std::vector<std::string> words;  // of that command
  std::string launcher;
  std::string device;
  int world = 0;
  std::string backing;      // "": in the store
  std::uint64_t saves = 0;  // consecutive ones, before the first kill
  double confidence = 0;
  Outcome outcome = Outcome::kInvalid;
  std::map<std::string, std::string> provenance;
  std::map<std::string, std::string> versions;  // that the program itself gave
  std::vector<SignedRequirement> requirements;
  std::vector<SaveRow> save_rows;
  std::vector<RestoreRow> restore_rows;
  std::vector<CheckpointRow> checkpoints;
  std::vector<MemoryRow> memory;
  std::vector<std::string> unmeasured;         // a sentence each
  std::map<std::string, SignedFile> files;     // path below the subject's folder
  std::map<std::string, SignedFile> evidence;  // path below the run's folder
};

// Without its seal.
std::string print_json(const Signoff& signoff);
std::string render_html(const Signoff& signoff);

// The document with `seal`, and what it is a seal of: the document's text without it.
std::string with_seal(std::string_view json, const std::string& seal);
// {seal, text that it must be the SHA-256 of}
Result<std::pair<std::string, std::string>> split_seal(std::string_view json,
                                                       const std::string& file);

// As much of it as checks and comparisons need: what was run, provenance and evidence.
Result<Signoff> signoff_from_json(std::string_view json, const std::string& file);

}  // namespace savegate::reports
