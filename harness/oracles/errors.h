// F4, F7, F8: what a save path does with the errors and short counts that it is told.
#pragma once

#include "harness/evidence.h"

namespace savegate::harness {

reports::Verdict short_io_continued(const Evidence& evidence);    // F4
reports::Verdict first_error_kept(const Evidence& evidence);      // F7
reports::Verdict late_errors_honoured(const Evidence& evidence);  // F8

}  // namespace savegate::harness
