// Minimising what fails: the fewest items, the smallest of an ordered choice.
//
//   auto kept = fewest(12, [&](const std::vector<std::size_t>& items) { return run(items); });
//
// Whatever is returned did fail when it was tried, or is all that was given. A predicate's error
// ends the search and is returned.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "faults/status.h"

namespace savegate::faults {

// Delta debugging (ddmin). All of the items 0 … count - 1 are known to fail; of those returned, in
// their order, none can be left out. None at all is tried first: what fails without them is not
// their doing. No set is tried twice.
Result<std::vector<std::size_t>> fewest(
    std::size_t count,
    const std::function<Result<bool>(const std::vector<std::size_t>& kept)>& fails);

// Of the choices 0 … count - 1, smallest first, the last is known to fail. Where larger ones fail
// wherever smaller ones do, the smallest that fails; else one that fails, next to one that does
// not.
Result<std::size_t> smallest(std::size_t count,
                             const std::function<Result<bool>(std::size_t choice)>& fails);

}  // namespace savegate::faults
