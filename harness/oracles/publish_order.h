// F6, C2: in which order bytes, syncs and names came, as the file system saw it.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict publish_order(const Evidence& evidence);  // F6
reports::Verdict marker_last(const Evidence& evidence);    // C2

}  // namespace savegate::harness
