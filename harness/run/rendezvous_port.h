// A TCP port for the ranks of one life to meet at (MASTER_PORT), that nothing else takes meanwhile.
//
// A port that the kernel gave out is its to give again as soon as it is closed, to any connection
// of any program, seconds before the ranks listen there. Those taken here lie below what the kernel
// gives out, and are leased among all runs of the network namespace by a socket of an abstract
// name.
#pragma once

#include <utility>

#include "faults/status.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {

class RendezvousPort {
 public:
  static Result<RendezvousPort> lease();
  int number() const { return number_; }  // nobody listened there when it was leased

 private:
  RendezvousPort(UniqueFd lease, int number) : lease_(std::move(lease)), number_(number) {}

  UniqueFd lease_;
  int number_;
};

}  // namespace savegate::harness
