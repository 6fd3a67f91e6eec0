// The registry: every requirement that an oracle judges, the oracle, and the evidence it goes by.
#include "harness/oracles.h"
#include "harness/oracles/bitwise.h"
#include "harness/oracles/carried_over.h"
#include "harness/oracles/commit.h"
#include "harness/oracles/complete_set.h"
#include "harness/oracles/directories.h"
#include "harness/oracles/durability.h"
#include "harness/oracles/errors.h"
#include "harness/oracles/export.h"
#include "harness/oracles/gpu_memory.h"
#include "harness/oracles/honesty.h"
#include "harness/oracles/host_memory.h"
#include "harness/oracles/load_transient.h"
#include "harness/oracles/measurements.h"
#include "harness/oracles/memory_limit.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/publish_order.h"
#include "harness/oracles/restore.h"
#include "harness/oracles/resume.h"
#include "harness/oracles/shard_claims.h"
#include "harness/oracles/snapshot.h"
#include "harness/oracles/staging.h"

namespace savegate::harness {

const std::vector<Oracle>& all_oracles() {
  static const std::vector<Oracle> kOracles = {
      {"H1", "Every configured fault fired, and every comparison that was to be made was made.",
       "executed_faults",
       "rules counted by the daemon and `fired.jsonl`, which must agree; event logs; lives run; "
       "items and bytes compared",
       &executed_faults},
      {"H4", "The verdicts are bound to what was run.", "bound_to_what_was_run",
       "`provenance.json`; the executable's digest before and after", &bound_to_what_was_run},
      {"H5", "The evidence is as it was collected.", "evidence_unaltered",
       "`manifest.json` against every evidence file", &evidence_unaltered},
      {"H6", "What was not measured is said to be not obtained.", "measured_not_guessed",
       "`memory` events: no process with 0 bytes, no GPU bytes without a GPU",
       &measured_not_guessed},
      {"H7", "A digest is tied to name, dtype, shapes, offset, length, rank and step.",
       "identified_items", "items of `save_begin`, `resumed` and the reader", &identified_items},
      {"F1", "A fresh process reads from the published checkpoint what every rank held.",
       "bitwise_read_back",
       "the reader's items of each complete announced checkpoint against `save_begin` of the save "
       "that wrote it",
       &bitwise_read_back},
      {"F2", "Each rank restores what it saved, item by item.", "per_rank_digests",
       "items of `resumed` against `save_begin`, all ranks against the same save",
       &per_rank_digests},
      {"F3", "All shards are there and whole, and a damaged file is found before it is used.",
       "complete_set",
       "tree after the life: number and size of shards, temporary files left; the reader on every "
       "save called a success and not deleted; trees before and after tampering against "
       "`resumed`; corrupted reads",
       &complete_set},
      {"F4", "Short writes and reads are continued, EINTR is retried.", "short_io_continued",
       "trace: later operations of the rank on the file cover the rest, or the save or load failed",
       &short_io_continued},
      {"F5", "No two ranks hold different bytes under the same key and range.", "disjoint_slices",
       "items of scope `shard` in `save_begin` and in the reader's checkpoints: name, global "
       "shape, offset, local shape, digest",
       &disjoint_slices},
      {"F6", "Temporary name, all bytes, fsync, rename, fsync of the directory, in this order.",
       "publish_order", "trace of every published file (subjects that claim durability)",
       &publish_order},
      {"F7", "A failed save names its first error: errno, rank, path, offset and bytes.",
       "first_error_kept",
       "trace: the errors that each rank was given first; `error` of `save_end` and `durable`",
       &first_error_kept},
      {"F8", "An error at fsync, close or rename fails the save.", "late_errors_honoured",
       "trace: errors at fsync, close, rename, directory fsync of a save; its reports",
       &late_errors_honoured},
      {"F9", "What was announced as saved is there after a power loss at any later moment.",
       "survives_power_loss",
       "rules with `lose` and what they took; the reader's checkpoints after the mount ended; "
       "names in the trace; trees before and after tampering (subjects that claim durability)",
       &survives_power_loss},
      {"F10", "What older code wrote is loaded; what is not known is refused with a reason.",
       "older_formats_load",
       "`resumed` of lives that load what a life with `change = \"older-code\"` saved, or the "
       "other way round",
       &older_formats_load},
      {"C1",
       "When one rank fails, every rank leaves with an error in time and none reports success.",
       "fail_together",
       "ends of processes, reports of saves and loads, fired kills, the reader for a success after "
       "a kill",
       &fail_together},
      {"C2", "The marker is published last, the pointer after it.", "marker_last",
       "trace: the marker's publication against every write, fsync and rename of the checkpoint's "
       "files; number of shards; what came after all ranks had called the save durable",
       &marker_last},
      {"C3", "A failed save does not advance the tracker.", "tracker_stays",
       "the reader's announced checkpoints, the pointer's moves in the trace, the next life's "
       "`resumed`",
       &tracker_stays},
      {"C4", "The marker and the files of an old save go before a new one is written over them.",
       "uncommitted_first",
       "names in the trace, from the tree before the life on: the old marker, then the old files, "
       "before any new one",
       &uncommitted_first},
      {"C5", "A load is refused by all ranks together.", "refuse_together",
       "`resumed` and ends of all ranks, updates and saves of that life", &refuse_together},
      {"C6", "The order of collectives is the same on all ranks.", "same_collectives",
       "`collective_enter` of each communicator", &same_collectives},
      {"C7", "A load with a damaged file is an error, never a fresh start.", "no_fresh_start",
       "tampering and failed reads against `resumed`", &no_fresh_start},
      {"C8", "The restored step is the expected one, by the program's own account.",
       "expected_step",
       "step and path of `resumed` against the stated save, or the reader's newest announced "
       "checkpoint",
       &expected_step},
      {"C9", "Rotation deletes nothing that is in use, newest, or to be kept.", "rotation_spares",
       "deletions in the trace outside of a step's own save; the pointer's moves, markers, "
       "`resumed`; `keep_every` of subject.toml",
       &rotation_spares},
      {"C10", "After a kill, fresh processes restore one complete checkpoint.", "survives_kills",
       "the life after a kill: steps of all ranks, items against one save, the reader",
       &survives_kills},
      {"C12", "Exit status 0 means that the life reached what it was asked for.", "real_success",
       "exit status, `done`, the save that `until` asks for", &real_success},
      {"R1", "Every rank of a resumed life is a new process.", "new_processes",
       "pid and start time of every rank in every life, pid in `hello`", &new_processes},
      {"R2", "All state for an exact resume is saved and restored; no sample is lost or repeated.",
       "whole_state",
       "kinds and names of items saved and restored; `samples` along the surviving lineage",
       &whole_state},
      {"R3", "A changed run contract is refused by name.", "run_contract",
       "refusals against the stated name; contract items", &run_contract},
      {"R4", "The first export after a restore is that of the saving step.",
       "first_export_after_restore",
       "`export` events of the restored step and later ones against those of the same steps in "
       "earlier lives",
       &first_export_after_restore},
      {"R5", "An update after the resume changes parameters as the uninterrupted run would.",
       "real_update",
       "`changed` of updates after a resume; items of a step saved in two lives (deterministic "
       "subjects)",
       &real_update},
      {"R6", "Checkpoints that lie at another path are restored, or refused with a reason.",
       "moved_directory_works", "the directory of each life, which is another one; `resumed`",
       &moved_directory_works},
      {"R7", "Records beside the checkpoints survive a resume.", "records_survive",
       "digests of the files that `records` of subject.toml names, up to their last whole line, "
       "or the bracket that closes an array: before a life, and of as many bytes after it",
       &records_survive},
      {"M1", "Host memory is recorded at the end of every phase, on every rank.",
       "host_memory_recorded",
       "`memory.jsonl`, which the runner measures from outside, against the events that end a "
       "phase",
       &host_memory_recorded},
      {"M2",
       "The job stays below its memory limit × the guard's threshold; a death is named rightly.",
       "within_memory_limit",
       "`memory.jsonl`: peak of the job's cgroup, page cache included and savegate's daemon not; "
       "ends "
       "of processes, the guard's and the rules' kills, the kernel's kills in each rank's cgroup, "
       "`gpu_refusals`",
       &within_memory_limit},
      {"M3", "Nothing that a process holds grows from save to save.", "nothing_grows",
       "`memory.jsonl`: the least that a process held around each save, of threads, children, open "
       "files, deleted open files, anonymous, shared and pinned memory; page cache and mapped "
       "files are left out",
       &nothing_grows},
      {"M4", "The staging memory of a save is given back after it.", "staging_given_back",
       "`memory` events: `host_staging` and `host_staging_used` of \"snapshot\", `host_staging` of "
       "the first \"before save\" and the last \"save\" of a rank that was done",
       &staging_given_back},
      {"M5", "A load takes no more host memory than its budget.", "load_stays_in_budget",
       "`memory.jsonl`: the peak of resident memory, and pinned memory, after a load against the "
       "most that the process of the life before held at the end of a phase; half of the state and "
       "8 MiB more are allowed; scenarios that claim it",
       &load_stays_in_budget},
      {"G1", "GPU memory is recorded before and after every save, load and export.",
       "gpu_memory_recorded",
       "`memory` events \"before save\", \"save\", \"before load\", \"load\", \"before export\", "
       "\"export\" of ranks on a GPU",
       &gpu_memory_recorded},
      {"G2", "After a load the allocator holds no more than it uses, nor does the first step.",
       "load_gives_cache_back",
       "`memory` event \"load\": reserved against allocated; \"update\": peak reserved of the "
       "first step after a resume against the same step before",
       &load_gives_cache_back},
      {"G3", "After a save another process can allocate what it could before.",
       "others_can_allocate",
       "`gpu_wakeable` of \"before save\" and \"save\": what a probe process did allocate",
       &others_can_allocate},
      {"G4", "What ends as out of memory was refused for good, not granted at the second try.",
       "retry_is_no_end",
       "reports with ENOMEM and no path against the rank's last `gpu_refusals` and `gpu_retries`",
       &retry_is_no_end},
      {"G5", "An asynchronous save holds the state as of the call, whatever runs meanwhile.",
       "consistent_snapshot",
       "`update` events between `save_end` and `durable`; what the reader and the next life read "
       "of such a save against its `save_begin`, and against later steps",
       &consistent_snapshot},
      {"expect", "Each life ends as the scenario states.", "expected_outcome",
       "exit status, signals, reports of saves and loads", &expected_outcome},
  };
  return kOracles;
}

}  // namespace savegate::harness
