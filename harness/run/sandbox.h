// The sandbox: a process tree and mounts that the kernel removes when the runner dies, however it
// dies.
//
// run_in_sandbox() starts a second process as pid 1 of a new pid namespace, in a mount namespace of
// its own; that one is the real runner. When it dies, the kernel kills every process of the
// namespace, and the mounts go with the namespace. The outer process only forwards signals and
// waits; when it is killed the inner one dies with it.
//
//   int exit_code = run_in_sandbox([&] { return run_suite(…); }).value_or(…);
//
// Call it before any thread is started.
#pragma once

#include <functional>
#include <string>

#include "faults/status.h"

namespace savegate::harness {

// The exit code of `body`, which runs in the inner process with watch_interrupts() done; 130 where
// an interrupt came and body gave 0. Code::kUnavailable where neither root's nor a user's
// namespaces are permitted.
Result<int> run_in_sandbox(const std::function<int()>& body);

// A short path (Unix socket paths end at 108 bytes) on a private tmpfs, for mount points, sockets
// and rendezvous files; only inside the sandbox, empty at its start.
const std::string& sandbox_directory();
bool in_sandbox();

}  // namespace savegate::harness
