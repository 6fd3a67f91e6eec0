/* A life told from C99, for c_api_test.cc: that savegate.h is C is shown by compiling this. */
#include <stdio.h>

#include "harness/worker/savegate.h"

int savegate_life_told_from_c(const void* weights, size_t bytes);

int savegate_life_told_from_c(const void* weights, size_t bytes) {
  static const char* const versions[] = {"trainer", "1.2", NULL};
  static const int64_t samples[] = {0, 7, 16, 23};
  const uint64_t global[] = {8}, local[] = {4}, offset[] = {4};
  const savegate_memory_range range = {weights, bytes};
  char digest[1][33];
  savegate_item item = {"w", "parameter", "shard", "u8", 1, NULL, NULL, NULL, 0, NULL};
  const savegate_failure full = {"write", "/checkpoints/step_1/shard", NULL, 28, 1, 4096, 100, 10};
  const savegate_fact facts[] = {{"host_rss", 4096}, {"gpu_allocated", -1}};
  int failed = 0;

  savegate_worker* worker = savegate_open();
  if (worker == NULL || savegate_digests("cpu", &range, 1, digest) != 0) return -1;
  item.global_shape = global;
  item.local_shape = local;
  item.offset = offset;
  item.bytes = bytes;
  item.digest = digest[0];
  failed |= savegate_hello(worker, versions);
  failed |= savegate_load_begin(worker);
  failed |= savegate_resumed(worker, SAVEGATE_NOTHING, NULL, NULL, 0);
  failed |= savegate_update(worker, 1, 1, samples, 2);
  failed |= savegate_save_begin(worker, 1, 1, &item, 1);
  failed |= savegate_save_end(worker, 1, 1, &full);
  failed |= savegate_save_begin(worker, 1, 1, &item, 1);
  failed |= savegate_save_end(worker, 1, 1, NULL);
  failed |= savegate_durable(worker, 1, 1, NULL);
  failed |= savegate_memory(worker, 1, "save", facts, 2);
  failed |= savegate_exported(worker, 1, digest[0]);
  failed |= savegate_collective_enter(worker, "world", 7, "barrier");
  failed |= savegate_collective_exit(worker, "world", 7, "barrier");
  failed |= savegate_phase(worker, "commit");
  failed |= savegate_done(worker);
  savegate_close(worker);
  return failed;
}
