// Ctrl-C and SIGTERM as something to poll: a flag and a descriptor that becomes readable.
//
// Everything that waits in the runner also waits for interrupt_fd(), so that an interrupted run
// stops its ranks, unmounts and keeps what it has.
#pragma once

#include "faults/status.h"

namespace savegate::harness {

Result<void> watch_interrupts();  // SIGINT, SIGTERM and SIGHUP from now on; once more is no error
bool interrupted();
int interrupt_fd();  // -1 before watch_interrupts(); stays readable once interrupted

}  // namespace savegate::harness
