// `savegate estimate`: whether the host has room for a save, from the headers of a checkpoint.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "faults/json_text.h"
#include "faults/plan.h"
#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/memory/save_budget.h"
#include "harness/run/output_of.h"
#include "harness/run/python.h"

namespace savegate::cli {
namespace {

using harness::Budget;
using harness::Source;
using harness::Term;

Result<void> read_bytes(const std::string& text, std::optional<std::uint64_t>& bytes) {
  if (text.empty()) return {};
  SAVEGATE_TRY(bytes, faults::parse_bytes(text));
  return {};
}

Result<harness::KnownTerms> known_terms(const EstimateWords& words) {
  harness::KnownTerms known;
  known.threshold = words.threshold;
  SAVEGATE_CHECK(read_bytes(words.resident, known.resident));
  SAVEGATE_CHECK(read_bytes(words.staging, known.staging));
  SAVEGATE_CHECK(read_bytes(words.sleeping, known.sleeping));
  SAVEGATE_CHECK(read_bytes(words.others, known.others));
  SAVEGATE_CHECK(read_bytes(words.limit, known.limit));
  return known;
}

nlohmann::ordered_json json_of(const Term& term) {
  nlohmann::ordered_json object = {{"name", term.name}, {"source", source_name(term.source)}};
  if (term.source == Source::kNotObtained) {
    object["bytes"] = nullptr;
  } else {
    object["bytes"] = term.bytes;
  }
  object["note"] = term.note;
  return object;
}

void print_json(const Budget& budget, bool fits) {
  const auto& checkpoint = budget.checkpoint;
  nlohmann::ordered_json object = {{"files", checkpoint.files},
                                   {"file_bytes", checkpoint.file_bytes}};
  if (checkpoint.not_obtained.empty()) {
    object["expanded"] = checkpoint.expanded;
    object["expanded_by_dtype"] = checkpoint.expanded_by_dtype;
  } else {
    object["expanded"] = nullptr;
  }
  for (const Term& term : budget.terms) object["terms"].push_back(json_of(term));
  object["peak"] = budget.peak();
  object["peak_is_a_least"] = !budget.complete();
  object["limit"] = json_of(budget.limit);
  object["threshold"] = budget.threshold;
  object["allowed"] = budget.allowed();
  object["fits"] = fits;
  fmt::print("{}\n", faults::json_text(object, 1));
}

std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string shown(const Term& term) {
  const bool known = term.source != Source::kNotObtained;
  return fmt::format("  {:<24} {:>16}  {:<12}  {}\n", term.name,
                     known ? mebibytes(term.bytes) : "-", source_name(term.source), term.note);
}

void print_text(const Budget& budget, bool fits) {
  const auto& checkpoint = budget.checkpoint;
  fmt::print("{} files, {}\n", checkpoint.files, mebibytes(checkpoint.file_bytes));
  if (checkpoint.not_obtained.empty()) {
    fmt::print("{} tensors, expanded {}\n", checkpoint.tensors, mebibytes(checkpoint.expanded));
  } else {
    fmt::print("expanded size: not obtained: {}\n", checkpoint.not_obtained);
  }
  for (const auto& [dtype, bytes] : checkpoint.expanded_by_dtype) {
    fmt::print("  {:<24} {:>16}\n", dtype, mebibytes(bytes));
  }
  fmt::print("at the peak of a save\n");
  for (const Term& term : budget.terms) fmt::print("{}", shown(term));
  fmt::print("{}", shown(budget.limit));
  fmt::print("{}{} of {} (limit × {}): {}\n", budget.complete() ? "" : "at least ",
             mebibytes(budget.peak()), mebibytes(budget.allowed()), budget.threshold,
             fits ? "fits" : "does not fit");
}

Result<std::string> read_metadata(const std::string& path) {
  SAVEGATE_TRY(const Catalog catalog, find_catalog());
  return harness::output_of({harness::python_program(catalog.bin),
                             harness::python_file(catalog.bin, "torch_metadata.py"), path});
}

Result<int> estimate(const EstimateWords& words) {
  SAVEGATE_TRY(const harness::KnownTerms known, known_terms(words));
  SAVEGATE_TRY(auto checkpoint, harness::measure_checkpoint(words.directory, read_metadata));
  const Budget budget = harness::budget_of(std::move(checkpoint), known);
  const bool fits = budget.peak() <= budget.allowed();
  if (words.json) {
    print_json(budget, fits);
  } else {
    print_text(budget, fits);
  }
  return static_cast<int>(fits ? kPassed : kFailed);
}

}  // namespace

int estimate_command(const EstimateWords& words) {
  Result<int> code = estimate(words);
  return code ? *code : report_error(code.error());
}

}  // namespace savegate::cli
