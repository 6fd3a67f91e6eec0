#include "harness/run/runnable.h"

#include "harness/applicable.h"
#include "harness/memory/job_cgroup.h"

namespace savegate::harness {

Result<void> check_runnable(const Scenario& scenario, const Subject& subject,
                            const std::string& device) {
  if (const std::string reason = inapplicable(scenario, subject, device); !reason.empty())
    return fail(invalid(reason));
  if (!scenario.limits_memory()) return {};
  if (const auto made = JobCgroup::create(scenario.world); !made)
    return fail(unavailable("memory is limited by cgroups: " + made.error().to_string()));
  return {};
}

}  // namespace savegate::harness
