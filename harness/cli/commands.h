// The commands of `savegate`, one function and one file each. They return the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace savegate::cli {

// What `savegate ctl MOUNT` is told.
struct CtlRequest {
  std::vector<std::string> words;
  bool defer = false;   // arm: on later opens, where files that are open already would not see it
  bool follow = false;  // fired: go on until the mount ends
};

struct RunWords {
  std::vector<std::string> names;
  std::string budget;      // "30m", "": none
  std::string quarantine;  // file, "": kQuarantineFile where it is there
};
int run_command(const RunWords& words, const Options& options);
int check_subject_command(const Options& options);

struct LoopWords {
  std::optional<std::uint64_t> rounds;  // default: as many as exclude `failure_probability`
  double confidence = 0.95;
  double failure_probability = 0.1;
  std::vector<std::string> vary;  // "writers=1,8": the first is the baseline's
};
int loop_command(const std::string& scenario, const LoopWords& words, const Options& options);
// A subject or command takes the place of the scene's own.
int replay_command(const std::string& scene, const Options& options);
// The fewest rules, ranks and bytes of state with which a scenario, or a scene's, fails as it does.
// `of_its_own` where the options say no subject: a scene's.
int reduce_command(const std::string& scenario_or_scene, bool of_its_own, const Options& options);
struct SignoffWords {
  std::optional<std::uint64_t> saves;  // default: as many as exclude `failure_probability`
  double confidence = 0.95;
  double failure_probability = 0.1;
};
int signoff_command(const SignoffWords& words, const Options& options);
// Whether all evidence is as it was signed.
int signoff_check_command(const std::string& file);
// Whether what the options say, as it is now, is what was signed; what they do not say is as
// signed.
struct ComparedWords {
  std::string file;
  bool subject = false;  // said in the options
  bool device = false;
};
int signoff_compare_command(const ComparedWords& words, const Options& options);
int judge_command(const std::string& run_directory);
int report_command(const std::string& run_directory);
// `markdown`: the table of docs/requirements.md.
int list_command(const std::string& what, bool markdown);
struct MountWords {
  std::string backing;
  std::string mount_point;
  std::string plan;       // file, "" for none
  std::string preset;     // "full-disk:limit=64MiB", "" for none
  std::string control;    // socket, "" for the default
  double hold_limit = 0;  // seconds, 0: none
  bool background = false;
};
int mount_command(const MountWords& words);
int ctl_command(const std::string& mount_or_socket, const CtlRequest& request);
int doctor_command(const std::string& store);
struct EstimateWords {
  std::string directory;  // of one checkpoint
  // Sizes such as "64GiB"; "": estimated or measured.
  std::string limit, resident, staging, sleeping, others;
  double threshold = 0.95;
  bool json = false;
};
int estimate_command(const EstimateWords& words);
int selftest_command(const std::string& controls, const std::vector<std::string>& names,
                     const Options& options);

}  // namespace savegate::cli
