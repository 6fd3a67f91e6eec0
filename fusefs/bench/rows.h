// The figures that docs/performance.md shows, each with its goal.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace savegate::fusefs::bench {

struct Setting {
  int rounds;
  std::string memory;  // folder on tmpfs
  std::string disk;    // folder on a disk
};

struct Figure {
  double value = 0;
  std::string detail;  // what it was made of
};

struct Row {
  std::string name;  // one word, to ask for it
  std::string what;
  double goal;
  bool at_least;  // else: at most
  std::string unit;
  std::function<Figure(const Setting&)> measure;
};

const std::vector<Row>& rows();

}  // namespace savegate::fusefs::bench
