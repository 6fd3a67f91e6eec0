// Names of files as they come and go in a life, replayed from its trace.
//
//   replay_names(life, [&](const NameChange& change, const std::set<std::string>& names) { … });
//
// `names` are those there before the change; the first of them lay there when the life began. The
// files of a directory that is renamed go and appear one by one.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "harness/oracles/view.h"

namespace savegate::harness {

enum class NameEvent : std::uint8_t {
  kAppears,  // made, or renamed or linked to this name
  kChanges,  // bytes were written
  kEmptied,  // cut to nothing
  kGoes,     // unlinked, or renamed to another name
};

struct NameChange {
  NameEvent event = NameEvent::kAppears;
  std::string path;
  const faults::TraceRecord* record = nullptr;
};

using NameWatch = std::function<void(const NameChange&, const std::set<std::string>& names)>;
void replay_names(const Life& life, const NameWatch& watch);

}  // namespace savegate::harness
