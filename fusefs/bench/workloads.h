// What is done to a folder, each returning a rate: more is better.
#pragma once

#include <string>

namespace savegate::fusefs::bench {

// Makes the files that the workloads use.
void prepare(const std::string& folder);

double overwrite(const std::string& folder, int writers = 1);  // MB/s in blocks of 1 MiB, in place
double overwrite_synced(const std::string& folder);            // the same, then fsync
double cold_read(const std::string& folder);                   // MB/s in blocks of 1 MiB
double random_writes(const std::string& folder);               // writes of 4 KiB a second
double small_files(const std::string& folder);  // create, 4 KiB, fsync, close, rename: a second
double stats(const std::string& folder);        // stat(2) a second

}  // namespace savegate::fusefs::bench
