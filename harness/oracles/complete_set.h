// F3: the shards of a saved checkpoint are all there, and a damaged file is found before it is
// used.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict complete_set(const Evidence& evidence);

}  // namespace savegate::harness
