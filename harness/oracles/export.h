// Exports: what is derived from the state is derived from the state as it is (R4).
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict first_export_after_restore(const Evidence& evidence);

}  // namespace savegate::harness
