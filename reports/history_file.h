// The rows of history.db: SQLite, one row for each result of each run of a store.
//
// Several runs of one store may write side by side: each adds its rows in one transaction and waits
// for the others. The layout has a version; a newer one, or a file that is no sound database, is an
// error that says so, and the file is left as it is.
#pragma once

#include <memory>
#include <string>

#include "faults/status.h"
#include "reports/history.h"

struct sqlite3;

namespace savegate::reports {

class HistoryFile {
 public:
  static Result<HistoryFile> open(const std::string& path);

  // Newest first; skipped ones too.
  Result<std::vector<HistoryRow>> recent(const About& about, std::size_t at_most) const;
  // The last row, not a skipped one, of everything.
  Result<std::map<About, HistoryRow>> latest() const;
  Result<void> add(const std::vector<HistoryRow>& rows);  // all or none

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  HistoryFile(std::string path, std::unique_ptr<sqlite3, Close> database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Status error(const char* operation) const;
  Result<void> execute(const char* sql) const;
  Result<void> insert(const std::vector<HistoryRow>& rows) const;
  Result<void> make_or_check_layout();
  Result<std::int64_t> version() const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace savegate::reports
