// The Python that runs subjects in Python, and whether it has the packages that they need.
#pragma once

#include <string>
#include <vector>

#include "faults/status.h"

namespace savegate::harness {

// {python} in commands: what SAVEGATE_PYTHON names, else the environment that `./dev python` made
// beside the programs, else python3 of PATH.
std::string python_program(const std::string& bin);

// "PYTHONPATH=…" with the folder of savegate_hook.py before what was there: a program under test
// can import it and need not have it installed.
std::string python_path(const std::string& bin);

// A file of the folder that savegate_hook.py is in.
std::string python_file(const std::string& bin, const std::string& name);

// Code::kUnavailable, with what to do about it, where one of the packages is not there.
Result<void> check_python_packages(const std::string& python,
                                   const std::vector<std::string>& packages);

}  // namespace savegate::harness
