// Negative controls: the reference save path with one step done wrong on purpose.
//
// Each is an override of one named step, in breaks_*.cc; an oracle that cannot tell it from the
// sound one is worth nothing.
#pragma once

#include <string>
#include <vector>

#include "scenarios/subjects/reference/program.h"

namespace savegate::reference {

struct Break {
  const char* name;
  const char* summary;
  void (*apply)(Options& options, Parts& parts);
};

const std::vector<Break>& all_breaks();
// False if there is none of that name.
bool apply_break(const std::string& name, Options& options, Parts& parts);

}  // namespace savegate::reference
