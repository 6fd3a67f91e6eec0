// Random plans: scenarios made by chance from what one recorded clean life shows, in which a sound
// save path must pass.
//
//   Scenario clean = random_clean_scenario(world);               // five saves, nothing goes wrong
//   … run it, read the trace of its life …
//   SAVEGATE_TRY(Scenario made, random_scenario(clean, trace, seed, 17));
//
// Each has one fault that ends a life, or may: a rank or the whole job is killed, or an operation
// fails, at a point of a save. In about half of them the next life is killed too, in its own save.
// Slow and short operations go with them. The last life is expected to be complete; what is lost or
// wrong before is judged by the oracles alone. The same seed, number and trace make the same one.
#pragma once

#include <cstdint>
#include <string>

#include "faults/status.h"
#include "faults/trace.h"
#include "harness/scenario.h"

namespace savegate::harness {

inline constexpr const char* kRandomSuite = "random";

Scenario random_clean_scenario(int world);

// An error where the trace shows no operation of a rank within a save.
Result<Scenario> random_scenario(const Scenario& clean, const faults::Trace& trace,
                                 std::uint64_t seed, std::uint64_t number);

}  // namespace savegate::harness
