#include "harness/run/runnable.h"

#include "harness/applicable.h"
#include "harness/memory/job_cgroup.h"

namespace savegate::harness {

std::string not_runnable(const Scenario& scenario, const Subject& subject,
                         const std::string& device) {
  std::string reason = inapplicable(scenario, subject, device);
  if (!reason.empty() || !scenario.limits_memory()) return reason;
  if (const auto made = JobCgroup::create(scenario.world); !made) {
    return "memory is limited by cgroups: " + made.error().to_string();
  }
  return "";
}

}  // namespace savegate::harness
