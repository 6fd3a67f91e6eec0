// A scene in Chrome's JSON trace format, which ui.perfetto.dev opens.
//
// A rank of a life is a process, a thread a thread; saves, phases, collectives and file operations
// are slices, faults and kills instants, and bytes not yet synced a counter.
#pragma once

#include <string>

#include "reports/scene.h"

namespace savegate::reports {

std::string print_perfetto(const Scene& scene);

}  // namespace savegate::reports
