// The samples that updates consumed: none lost or repeated over all resumes (R2).
//
// Ids that one uninterrupted life counts up without a gap are positions in a stream: over the
// surviving lineage they are then to be disjoint and complete. Other ids, such as those of a
// shuffled data set or of a second epoch, tell nothing across steps: there, a step that a resumed
// life does again is to consume what it consumed before.
#pragma once

#include "harness/oracles/view.h"

namespace savegate::harness {

struct SampleCheck {
  std::vector<std::string> flaws;
  std::string summary;  // what was compared
};
SampleCheck check_samples(const View& view);

}  // namespace savegate::harness
