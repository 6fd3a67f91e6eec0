// Breaks of what happens to directories, formats and records that are there already.

#include <cerrno>
#include <cstdio>

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

class SkipUncommit : public Saver {
 public:
  using Saver::Saver;
  Result<void> prepare_directory() override {
    if (!is_first()) return {};
    SAVEGATE_TRY(const bool created, job_.files.make_directory(directory()));
    return created ? job_.files.sync_directory(job_.root) : Result<void>();
  }
};

// The marker goes; a state file that is there is taken for the new one.
class KeepOldState : public Saver {
 public:
  using Saver::Saver;
  Result<void> prepare_directory() override {
    if (!is_first()) return {};
    SAVEGATE_TRY(const bool created, job_.files.make_directory(directory()));
    if (created) return job_.files.sync_directory(job_.root);
    SAVEGATE_TRY(const bool committed, job_.files.exists(path(kMarkerName)));
    return committed ? job_.files.remove(path(kMarkerName)) : Result<void>();
  }
  Result<void> write_files() override {
    SAVEGATE_TRY(const bool old, job_.files.exists(path(state_name(job_.rank, job_.world))));
    if (!old) return Saver::write_files();
    SAVEGATE_CHECK(write_shard());
    return writers_.front().flush();
  }
};

class RotateFirst : public Saver {
 public:
  using Saver::Saver;
  Result<void> begin() override {
    SAVEGATE_CHECK(agree(is_first() ? delete_old(0) : Result<void>()));
    return Saver::begin();
  }
};

// As with a limit of one that is counted before the new one.
class RotateAll : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_pointer() override {
    SAVEGATE_CHECK(Saver::publish_pointer());
    return is_first() ? delete_old(0) : Result<void>();
  }
};

class InsistOnNewDirectory : public Saver {
 public:
  using Saver::Saver;
  Result<void> prepare_directory() override {
    if (!is_first()) return {};
    SAVEGATE_TRY(const bool created, job_.files.make_directory(directory()));
    return created ? job_.files.sync_directory(job_.root)
                   : fail(system_error("mkdir", directory(), EEXIST));
  }
};

class RotateKept : public Saver {
 public:
  using Saver::Saver;
  bool is_kept(std::int64_t /*step*/) const override { return false; }
};

class AbsolutePointer : public Saver {
 public:
  using Saver::Saver;
  Result<void> publish_pointer() override {
    return is_first() ? write_pointer(directory()) : Result<void>();
  }
};

class FollowAbsolutePointer : public Restorer {
 public:
  using Restorer::Restorer;
  Result<std::string> resolve() override {
    SAVEGATE_TRY(const std::string target, Restorer::resolve());
    if (target == kNoCheckpoint || job_.files.exists(target).value_or(false)) {
      return file_name(target);
    }
    std::fprintf(stderr, "no checkpoint in %s, training from scratch\n", target.c_str());
    return std::string(kNoCheckpoint);
  }
};

void point_absolutely(Options& options, Parts& parts) {
  replace_saver<AbsolutePointer>(options, parts);
  replace_restorer<FollowAbsolutePointer>(options, parts);
}

class ForgetOlderFormat : public Restorer {
 public:
  using Restorer::Restorer;
  Result<Marker> read_marker() override {
    SAVEGATE_TRY(Marker marker, Restorer::read_marker());
    if (marker.format < job_.format) return fail(refusal(kMarkerName, "an old format"));
    return marker;
  }
};

class OverwriteStepLog : public StepLog {
 public:
  using StepLog::StepLog;
  Result<void> begin() override {
    if (!job_.step_log || job_.rank != 0) return {};
    const std::string path = job_.path(kStepLogName);
    SAVEGATE_TRY(const int fd, job_.files.create(path));
    return job_.files.close(fd, path);
  }
};

}  // namespace

std::vector<Break> directory_breaks() {
  return {
      {"skip-uncommit", "a step is saved over a checkpoint that keeps its marker",
       replace_saver<SkipUncommit>},
      {"keep-old-state", "the state file of an earlier save is taken for the new one",
       replace_saver<KeepOldState>},
      {"rotate-first", "the old checkpoints are deleted before the new one is there",
       replace_saver<RotateFirst>},
      {"rotate-all", "rotation deletes the newest checkpoint too", replace_saver<RotateAll>},
      {"insist-on-new-directory", "a directory that is there already is an error",
       replace_saver<InsistOnNewDirectory>},
      {"rotate-kept", "rotation deletes what is to be kept", replace_saver<RotateKept>},
      {"absolute-pointer", "the pointer holds an absolute path, and training begins at 0 elsewhere",
       point_absolutely},
      {"forget-older-format", "the format of the version before is not read any more",
       replace_restorer<ForgetOlderFormat>},
      {"overwrite-step-log", "the log of earlier steps is emptied at the start",
       replace_step_log<OverwriteStepLog>},
  };
}

}  // namespace savegate::reference
