/* savegate from C: the worker's calls and the tree digest, in libsavegate_worker.so.
 *
 * Each call writes one event, as docs/subject-contract.md says; worker.h is the same for C++.
 *
 *   savegate_worker *worker = savegate_open();
 *   savegate_hello(worker, NULL);
 *   savegate_resumed(worker, SAVEGATE_NOTHING, NULL, NULL, 0);
 *   savegate_update(worker, 1, 1, NULL, 0);
 *   savegate_save_begin(worker, 1, 1, items, item_count);
 *   savegate_failure failure;
 *   int saved = save(&failure);
 *   savegate_save_end(worker, 1, 1, saved ? NULL : &failure);
 *   if (saved) savegate_durable(worker, 1, 1, NULL);
 *   savegate_done(worker);
 *   savegate_close(worker);
 *
 * Without SAVEGATE_EVENTS nothing is written. An event that cannot be delivered is said once on
 * stderr and is no error of the call: an instrument must not change what the program does. Calls
 * return 0, or -1 where they were used wrongly or memory is out, as savegate_error() then says.
 * A worker serves one thread at a time, a thread that reports by itself opens its own. Strings are
 * UTF-8, end with a zero, and are copied. A pointer marked "or NULL" may be NULL.
 */
#ifndef SAVEGATE_H
#define SAVEGATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SAVEGATE_CONTRACT 1
#define SAVEGATE_NOTHING INT64_MIN /* resumed: no step was restored */

typedef struct savegate_worker savegate_worker;

/* One saved or restored object. The shapes have `dimensions` extents each. */
typedef struct savegate_item {
  const char* name;
  const char* kind;  /* parameter optimizer scheduler rng counter contract derived */
  const char* scope; /* rank replica shard */
  const char* dtype; /* "bf16" */
  size_t dimensions;
  const uint64_t* global_shape;
  const uint64_t* local_shape;
  const uint64_t* offset;
  uint64_t bytes;
  const char* digest; /* 32 hex digits */
} savegate_item;

/* The first failure. What is not known: 0, -1 or NULL. */
typedef struct savegate_failure {
  const char* operation; /* "write", or NULL */
  const char* path;      /* or NULL */
  const char* text;      /* or NULL */
  int error;             /* errno */
  int rank;
  int64_t offset;
  int64_t requested; /* bytes */
  int64_t returned;  /* bytes */
} savegate_failure;

typedef struct savegate_fact {
  const char* name; /* "host_rss" */
  int64_t bytes;    /* -1: not obtained */
} savegate_fact;

/* Memory of the host or of a GPU. */
typedef struct savegate_memory_range {
  const void* data;
  size_t bytes;
} savegate_memory_range;

int savegate_contract(void);      /* the version that the library speaks */
const char* savegate_error(void); /* of this thread's last call that failed; "" before one */

savegate_worker* savegate_open(void);         /* NULL where memory is out */
void savegate_close(savegate_worker* worker); /* NULL is fine */

/* What the runner asked of this rank. */
int savegate_rank(const savegate_worker* worker);
int savegate_world(const savegate_worker* worker);
int savegate_life(const savegate_worker* worker);
int savegate_until_save(const savegate_worker* worker); /* N of "save N"; 0: no end is asked for */

/* name, version, name, version, …, NULL; or NULL */
int savegate_hello(savegate_worker* worker, const char* const* versions);
int savegate_load_begin(savegate_worker* worker);
int savegate_resumed(savegate_worker* worker, int64_t step, const char* path_or_null,
                     const savegate_item* items, size_t count);
int savegate_load_refused(savegate_worker* worker, const char* path_or_null,
                          const savegate_failure* failure);
/* samples: first, last, first, last, …: `ranges` pairs, both ends included */
int savegate_update(savegate_worker* worker, int64_t step, int changed, const int64_t* samples,
                    size_t ranges);
int savegate_save_begin(savegate_worker* worker, int64_t step, int save, const savegate_item* items,
                        size_t count);
/* failure NULL: it succeeded */
int savegate_save_end(savegate_worker* worker, int64_t step, int save,
                      const savegate_failure* failure_or_null);
int savegate_durable(savegate_worker* worker, int64_t step, int save,
                     const savegate_failure* failure_or_null);
int savegate_exported(savegate_worker* worker, int64_t step, const char* digest);
int savegate_memory(savegate_worker* worker, int64_t step, const char* phase,
                    const savegate_fact* facts, size_t count);
int savegate_collective_enter(savegate_worker* worker, const char* communicator, uint64_t number,
                              const char* kind);
int savegate_collective_exit(savegate_worker* worker, const char* communicator, uint64_t number,
                             const char* kind);
int savegate_phase(savegate_worker* worker, const char* name);
int savegate_done(savegate_worker* worker);

/* Tree digests of `count` ranges, each 32 hex digits and a zero. `device` is "cpu", or "cuda:N" for
 * memory of that GPU, which is digested there: what fills it is to be done before. The thread's
 * current CUDA device stays what it was. Thread-safe. -1 where there is no such device, or no
 * libsavegate_cuda.so beside this library. */
int savegate_digests(const char* device, const savegate_memory_range* ranges, size_t count,
                     char (*digests)[33]);

#ifdef __cplusplus
}
#endif
#endif
