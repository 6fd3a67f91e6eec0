// The matrix of a self-test: which oracle caught which negative control, and which others spoke up.
#pragma once

#include <string>
#include <vector>

namespace savegate::cli {

struct CatchRow {
  std::string control;
  std::vector<std::string> named;           // ids, one of which must catch it
  std::vector<std::string> fired;           // ids that gave the verdict it asks for
  bool caught() const;                      // by one of those that it names
  std::vector<std::string> others() const;  // that fired too
};

// A line a control, a column for each of `ids` that any of them names or fires.
std::string print_matrix(const std::vector<CatchRow>& rows, const std::vector<std::string>& ids);

// Those of `ids` that caught none of the controls that name them.
std::vector<std::string> without_a_catch(const std::vector<CatchRow>& rows,
                                         const std::vector<std::string>& ids);

}  // namespace savegate::cli
