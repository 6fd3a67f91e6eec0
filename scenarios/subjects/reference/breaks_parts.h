// Replacing one part of the program by a subclass that does one step otherwise.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/subjects/reference/breaks.h"

namespace savegate::reference {

template <class Broken>
void replace_files(Options& /*options*/, Parts& parts) {
  parts.files = [](int rank) { return std::make_unique<Broken>(rank); };
}

template <class Broken>
void replace_saver(Options& /*options*/, Parts& parts) {
  parts.saver = [](Job& job) { return std::make_unique<Broken>(job); };
}

template <class Broken>
void replace_restorer(Options& /*options*/, Parts& parts) {
  parts.restorer = [](Job& job) { return std::make_unique<Broken>(job); };
}

template <class Broken>
void replace_training(Options& /*options*/, Parts& parts) {
  parts.training = [](Job& job) { return std::make_unique<Broken>(job); };
}

template <class Broken>
void replace_reporter(Options& /*options*/, Parts& parts) {
  parts.reporter = [](worker::Worker& worker) { return std::make_unique<Broken>(worker); };
}

template <class Broken>
void replace_exporter(Options& /*options*/, Parts& parts) {
  parts.exporter = [](gpu::Backend& backend) { return std::make_unique<Broken>(backend); };
}

template <class Broken>
void replace_step_log(Options& /*options*/, Parts& parts) {
  parts.step_log = [](Job& job) { return std::make_unique<Broken>(job); };
}

std::vector<Break> file_breaks();
std::vector<Break> save_breaks();
std::vector<Break> child_breaks();
std::vector<Break> restore_breaks();
std::vector<Break> report_breaks();
std::vector<Break> async_breaks();
std::vector<Break> device_breaks();
std::vector<Break> memory_breaks();
std::vector<Break> directory_breaks();

// For the breaks in which a rank says nothing to its peers: it stays in the job, its connections
// open, until the collective's deadline is over, as a trainer whose shutdown waits would.
inline constexpr std::chrono::milliseconds kPatience{60000};
[[noreturn]] void linger();

}  // namespace savegate::reference
