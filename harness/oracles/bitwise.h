// F1, F2: the bytes that were held are the bytes that are read back and restored.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict bitwise_read_back(const Evidence& evidence);  // F1
reports::Verdict per_rank_digests(const Evidence& evidence);   // F2

}  // namespace savegate::harness
