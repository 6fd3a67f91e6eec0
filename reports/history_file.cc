#include "reports/history_file.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace savegate::reports {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr int kWaitForOthersMs = 60'000;

constexpr const char* kLayout = R"sql(
CREATE TABLE result (
  id       INTEGER PRIMARY KEY,
  run      TEXT NOT NULL,
  ended    INTEGER NOT NULL,   -- seconds since 1970
  scenario TEXT NOT NULL,
  subject  TEXT NOT NULL,
  world    INTEGER NOT NULL,
  device   TEXT NOT NULL,
  verdict  TEXT NOT NULL,      -- PASS, FAIL, INVALID, SKIP
  failed   TEXT NOT NULL,      -- ids, separated by spaces
  sentence TEXT NOT NULL,      -- of the first of them
  seed     TEXT NOT NULL,      -- 0 to 2^64 - 1
  seconds  REAL,
  bound_to TEXT NOT NULL       -- digest of code, command and scenario
);
CREATE INDEX result_about ON result (scenario, subject, world, device, id);
PRAGMA user_version = 1;
)sql";

constexpr std::string_view kColumns =
    "run, ended, scenario, subject, world, device, verdict, failed, sentence, seed, seconds, "
    "bound_to";

std::string join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::uint64_t number(const std::string& digits) {
  std::uint64_t value = 0;
  for (const char digit : digits)
    if (digit >= '0' && digit <= '9') value = value * 10 + static_cast<std::uint64_t>(digit - '0');
  return value;
}

class Statement {
 public:
  Statement(sqlite3* database, const std::string& sql)
      : ready_(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK) {}
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void bind(std::int64_t value) { sqlite3_bind_int64(statement_, ++bound_, value); }
  void bind(const Measurement& value) {
    ++bound_;  // what is not bound is NULL
    if (value) sqlite3_bind_double(statement_, bound_, *value);
  }
  // Whether there is a row; nothing on an error, which the database then tells.
  std::optional<bool> step() {
    const int code = ready_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return std::nullopt;
  }
  void again() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
    bound_ = 0;
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): SQLite's text is unsigned
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const auto length = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
    return bytes == nullptr ? std::string() : std::string(bytes, length);
  }
  Measurement measurement(int column) const {
    if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
    return sqlite3_column_double(statement_, column);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ready_;
  int bound_ = 0;
};

HistoryRow read_row(const Statement& found) {
  HistoryRow row;
  row.run = found.text(0);
  row.ended = found.integer(1);
  row.about = {.scenario = found.text(2),
               .subject = found.text(3),
               .world = static_cast<int>(found.integer(4)),
               .device = found.text(5)};
  row.outcome = outcome_from_name(found.text(6)).value_or(Outcome::kInvalid);
  row.failed = split(found.text(7));
  row.sentence = found.text(8);
  row.seed = number(found.text(9));
  row.seconds = found.measurement(10);
  row.bound_to = found.text(11);
  return row;
}

}  // namespace

void HistoryFile::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Status HistoryFile::error(const char* operation) const {
  const int code = sqlite3_errcode(database_.get());
  Status status = unavailable(sqlite3_errmsg(database_.get()), path_);
  status.operation = operation;
  if (code == SQLITE_NOTADB || code == SQLITE_CORRUPT)
    status.text += "; move it away, and the history begins anew";
  return status;
}

Result<HistoryFile> HistoryFile::open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  HistoryFile history(path, std::unique_ptr<sqlite3, Close>(opened));
  if (code != SQLITE_OK) return fail(history.error("open"));
  sqlite3_busy_timeout(opened, kWaitForOthersMs);
  SAVEGATE_CHECK(history.make_or_check_layout());
  return history;
}

Result<std::int64_t> HistoryFile::version() const {
  Statement statement(database_.get(), "PRAGMA user_version");
  if (!statement.step().value_or(false)) return fail(error("read"));
  return statement.integer(0);
}

Result<void> HistoryFile::make_or_check_layout() {
  SAVEGATE_TRY(std::int64_t found, version());
  if (found == 0) {
    // Another run may be making it: who comes second finds it made.
    SAVEGATE_CHECK(execute("BEGIN IMMEDIATE"));
    SAVEGATE_TRY(found, version());
    Result<void> made = found == 0 ? execute(kLayout) : Result<void>();
    SAVEGATE_CHECK(execute(made ? "COMMIT" : "ROLLBACK"));
    if (!made) return made;
    SAVEGATE_TRY(found, version());
  }
  if (found != kVersion)
    return fail(unavailable(fmt::format("its layout is version {}, and this savegate knows {}: use "
                                        "the newer one, or another store",
                                        found, kVersion),
                            path_));
  return {};
}

Result<void> HistoryFile::execute(const char* sql) const {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(error("write"));
  return {};
}

Result<std::vector<HistoryRow>> HistoryFile::recent(const About& about, std::size_t at_most) const {
  Statement statement(database_.get(),
                      fmt::format("SELECT {} FROM result WHERE scenario = ? AND subject = ? AND "
                                  "world = ? AND device = ? ORDER BY id DESC LIMIT ?",
                                  kColumns));
  statement.bind(about.scenario);
  statement.bind(about.subject);
  statement.bind(about.world);
  statement.bind(about.device);
  statement.bind(static_cast<std::int64_t>(at_most));
  std::vector<HistoryRow> rows;
  auto more = statement.step();
  for (; more.value_or(false); more = statement.step()) rows.push_back(read_row(statement));
  if (!more) return fail(error("read"));
  return rows;
}

Result<std::map<About, HistoryRow>> HistoryFile::latest() const {
  Statement statement(database_.get(),
                      fmt::format("SELECT {} FROM result WHERE id IN (SELECT max(id) FROM result "
                                  "WHERE verdict <> 'SKIP' GROUP BY scenario, subject, world, "
                                  "device)",
                                  kColumns));
  std::map<About, HistoryRow> rows;
  auto more = statement.step();
  for (; more.value_or(false); more = statement.step()) {
    HistoryRow row = read_row(statement);
    About about = row.about;
    rows.emplace(std::move(about), std::move(row));
  }
  if (!more) return fail(error("read"));
  return rows;
}

Result<void> HistoryFile::add(const std::vector<HistoryRow>& rows) {
  SAVEGATE_CHECK(execute("BEGIN IMMEDIATE"));
  Result<void> added = insert(rows);
  if (added) added = execute("COMMIT");
  // After an error of its own, SQLite may have rolled back already.
  if (!added && sqlite3_get_autocommit(database_.get()) == 0) SAVEGATE_CHECK(execute("ROLLBACK"));
  return added;
}

Result<void> HistoryFile::insert(const std::vector<HistoryRow>& rows) const {
  Statement statement(
      database_.get(),
      fmt::format("INSERT INTO result ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kColumns));
  for (const HistoryRow& row : rows) {
    statement.bind(row.run);
    statement.bind(row.ended);
    statement.bind(row.about.scenario);
    statement.bind(row.about.subject);
    statement.bind(row.about.world);
    statement.bind(row.about.device);
    statement.bind(std::string(outcome_name(row.outcome)));
    statement.bind(join(row.failed));
    statement.bind(row.sentence);
    statement.bind(std::to_string(row.seed));
    statement.bind(row.seconds);
    statement.bind(row.bound_to);
    if (!statement.step()) return fail(error("write"));
    statement.again();
  }
  return {};
}

}  // namespace savegate::reports
