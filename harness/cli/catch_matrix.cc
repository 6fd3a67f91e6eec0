#include "harness/cli/catch_matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace savegate::cli {
namespace {

constexpr std::size_t kNameWidth = 30;
constexpr std::size_t kMostLetters = 3;  // of an id, one below the other

bool has(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

char mark_of(const CatchRow& row, const std::string& id) {
  const bool named = has(row.named, id);
  if (has(row.fired, id)) return named ? 'X' : 'o';
  return named ? '-' : '.';
}

}  // namespace

bool CatchRow::caught() const {
  return std::any_of(named.begin(), named.end(),
                     [&](const std::string& id) { return has(fired, id); });
}

std::vector<std::string> CatchRow::others() const {
  std::vector<std::string> ids = fired;
  std::erase_if(ids, [&](const std::string& id) { return has(named, id); });
  return ids;
}

std::string print_matrix(const std::vector<CatchRow>& rows, const std::vector<std::string>& ids) {
  std::vector<std::string> columns = ids;
  std::erase_if(columns, [&](const std::string& id) {
    return std::none_of(rows.begin(), rows.end(), [&](const CatchRow& row) {
      return has(row.named, id) || has(row.fired, id);
    });
  });
  if (columns.empty()) return "";
  std::string text;
  for (std::size_t letter = 0; letter < kMostLetters; ++letter) {
    std::string line(kNameWidth, ' ');
    for (const std::string& id : columns) {
      line += ' ';
      line += letter < id.size() ? id[letter] : ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  for (const CatchRow& row : rows) {
    text += fmt::format("{:<{}}", row.control, kNameWidth);
    for (const std::string& id : columns) {
      text += ' ';
      text += mark_of(row, id);
    }
    text += '\n';
  }
  return text + "X caught it, o spoke up too, - was to catch it and did not\n";
}

std::vector<std::string> without_a_catch(const std::vector<CatchRow>& rows,
                                         const std::vector<std::string>& ids) {
  std::vector<std::string> left = ids;
  std::erase_if(left, [&](const std::string& id) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const CatchRow& row) { return mark_of(row, id) == 'X'; });
  });
  return left;
}

}  // namespace savegate::cli
