// The gate: what the store's history and the quarantine make of the results of a run.
//
// Neither can lose a run: a history that cannot be read or written is said on stderr, the results
// are written without it, and a run that passed exits with 3.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"
#include "reports/history_file.h"
#include "reports/quarantine.h"
#include "reports/result.h"

namespace savegate::cli {

inline constexpr const char* kQuarantineFile = "savegate-quarantine.toml";  // where one is there
inline constexpr const char* kHistoryFile = "history.db";                   // in the store

using Quarantines = std::vector<reports::QuarantineEntry>;
// Of the file, or of kQuarantineFile in the current folder where `path` is "" and it is there.
Result<Quarantines> read_quarantines(const std::string& path);

class Gate {
 public:
  Gate(const std::string& store, Quarantines quarantines);

  // The last result of everything; none where there is no history.
  std::map<reports::About, reports::HistoryRow> latest();
  // Sets the standing of every result.
  void weigh(reports::RunRecord& run);
  // Remembers the run, says what there is to say of history and quarantine; the exit code.
  int close(const reports::RunRecord& run, int code);

 private:
  void lose_history(const Status& status);

  Quarantines quarantines_;
  std::vector<std::string> notes_;
  Result<reports::HistoryFile> history_;
  bool history_is_whole_ = true;
};

}  // namespace savegate::cli
