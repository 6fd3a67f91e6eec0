// Reading TOML tables strictly: every key is asked for or refused, with file, line, column and the
// nearest valid word. Plans, scenarios, suites and subjects are all read through this.
//
//   SAVEGATE_TRY(TomlDocument doc, parse_toml(text, "suite.toml"));
//   TomlReader root = doc.root();
//   auto name = root.required_string("name");
//   auto world = root.integer("world", 2, 1, 4096);
//   ...
//   SAVEGATE_CHECK(root.finish());      // first error met, or the first key that nobody asked for
//
// A reader collects its first error; reads after it return defaults, so that code stays flat.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"

namespace savegate::faults {

// As a basic string: in quotes, escaped.
std::string toml_string(std::string_view text);

class TomlDocument;
struct TomlNode;  // opaque: one toml++ table with its source name

class TomlReader {
 public:
  bool has(std::string_view key) const;
  bool is_table(std::string_view key) const;
  bool is_boolean(std::string_view key) const;
  std::string required_string(std::string_view key);
  std::string string(std::string_view key, std::string_view otherwise = "");
  std::string required_date(std::string_view key);  // a local date, as "2026-12-31"
  // One of `valid`; anything else is an error that names the nearest.
  std::string word(std::string_view key, const std::vector<std::string>& valid,
                   std::string_view otherwise);
  std::vector<std::string> words(std::string_view key, const std::vector<std::string>& valid);
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t least,
                       std::int64_t most);
  double number(std::string_view key, double otherwise, double least, double most);
  bool boolean(std::string_view key, bool otherwise);
  // A string or an array of strings, an integer or an array of them. A list without an entry is
  // refused: it would be taken for a key that is not there, which often says the opposite.
  std::vector<std::string> strings(std::string_view key);
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most);
  std::vector<std::string> strings_or_none(std::string_view key);  // the list may be empty
  std::string text(
      std::string_view key);  // a string, or a number in its TOML spelling ("" if absent)
  std::vector<std::string> texts(std::string_view key);  // an array of them
  std::optional<TomlReader> table(std::string_view key);
  std::vector<TomlReader> tables(std::string_view key);  // array of tables
  std::vector<std::pair<std::string, std::string>> string_map(
      std::string_view key);  // table of scalars

  std::string where() const;  // "suite.toml:12:7", of the table

  // An error at `key` (or at the table), kept if it is the first.
  void error_at(std::string_view key, std::string text);
  // The same at the table, for a key that should be there. A misspelt key in the document explains
  // it better and is reported in its place.
  void error_missing(std::string text);
  // All keys were asked for and no error was met, in this table and in those handed out from it.
  Result<void> finish();

  explicit TomlReader(std::shared_ptr<TomlNode> node) : node_(std::move(node)) {}

 private:
  bool is_one_of(std::string_view key, const std::string& found,
                 const std::vector<std::string>& valid);

  std::shared_ptr<TomlNode> node_;
};

class TomlDocument {
 public:
  TomlReader root() const;
  explicit TomlDocument(std::shared_ptr<TomlNode> node) : node_(std::move(node)) {}

 private:
  std::shared_ptr<TomlNode> node_;
};
Result<TomlDocument> parse_toml(std::string_view text, std::string_view source_name);

// "…; did you mean `rank`?" for the nearest of `valid`, "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& valid);

}  // namespace savegate::faults
