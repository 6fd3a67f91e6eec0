#include "faults/injector.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "faults/armed_plan.h"
#include "faults/phases.h"

namespace savegate::faults {

struct Injector::Impl {
  Impl(Layout of, int number) : layout(std::move(of)), life(number) {}

  std::shared_ptr<ArmedPlan> armed_now() const {
    const std::lock_guard lock(mutex);
    return armed;
  }

  const Layout layout;
  const int life;
  Phases phases;
  mutable std::mutex mutex;  // of `armed`; held only to copy or set it
  std::shared_ptr<ArmedPlan> armed;
  std::atomic<std::uint64_t> generation{0};
};

Injector::Injector(Plan plan, Layout layout, int life)
    : impl_(std::make_unique<Impl>(std::move(layout), life)) {
  arm(std::move(plan));
}

Injector::~Injector() = default;

void Injector::arm(Plan plan) {
  const std::lock_guard lock(impl_->mutex);
  const std::uint64_t generation = impl_->generation.load() + 1;
  impl_->armed =
      std::make_shared<ArmedPlan>(std::move(plan), impl_->layout, impl_->life, generation);
  impl_->generation.store(generation);
}

std::uint64_t Injector::generation() const { return impl_->generation.load(); }

Plan Injector::plan() const { return impl_->armed_now()->plan(); }

std::shared_ptr<const FileRules> Injector::rules_for(std::string_view path) const {
  std::shared_ptr<ArmedPlan> armed = impl_->armed_now();
  ArmedPlan::Selection selection = armed->select(path);
  if (selection.ops == 0) return nullptr;
  auto rules = std::make_shared<FileRules>();
  rules->ops_ = selection.ops;
  rules->keeps_unsynced_ = selection.keeps_unsynced;
  rules->keeps_past_ = selection.keeps_past;
  rules->role_ = selection.file.role;
  rules->temporary_ = selection.file.temporary;
  rules->rules_ = std::move(selection.rules);
  rules->budgets_ = std::move(selection.budgets);
  rules->plan_ = std::move(armed);
  return rules;
}

Decision Injector::decide(const Operation& operation) {
  const FileRules* rules = operation.rules;
  if (rules == nullptr || !rules->can_match(operation.op) ||
      rules->plan_->generation() != generation()) {
    return {};
  }
  return rules->plan_->decide(operation, rules->rules_, rules->budgets_, impl_->phases);
}

void Injector::enter(int rank, std::string_view span, std::uint64_t now_ns) {
  impl_->phases.enter(rank, span);
  impl_->armed_now()->marked(rank, span, *impl_->phases.now(rank), now_ns);
}
void Injector::leave(int rank, std::string_view span) { impl_->phases.leave(rank, span); }
void Injector::point(int rank, std::string_view name, std::uint64_t now_ns) {
  impl_->phases.point(rank, name);
  impl_->armed_now()->marked(rank, name, *impl_->phases.now(rank), now_ns);
}
std::string Injector::phase(int rank) const { return impl_->phases.now(rank)->full; }
int Injector::attempt(int rank) const { return impl_->phases.now(rank)->attempt; }

void Injector::adopt(FileId file, std::string_view path, std::uint64_t size) {
  const std::shared_ptr<ArmedPlan> armed = impl_->armed_now();
  armed->accounts().adopt(armed->common_budgets_of(path), file, size);
}

void Injector::truncated(FileId file, std::uint64_t size) {
  impl_->armed_now()->accounts().shrink(file, size);
}

void Injector::punched(FileId file, std::uint64_t from, std::uint64_t to) {
  impl_->armed_now()->accounts().punch(file, from, to);
}

void Injector::settle_inode(std::string_view path, FileId file) {
  const std::shared_ptr<ArmedPlan> armed = impl_->armed_now();
  armed->accounts().settle_inode(armed->common_budgets_of(path), file);
}

void Injector::released(FileId file) {
  const std::shared_ptr<ArmedPlan> armed = impl_->armed_now();
  armed->accounts().release(file);
  armed->forget_late_errors(file);
}

std::optional<Space> Injector::space(std::string_view path) const {
  const std::shared_ptr<ArmedPlan> armed = impl_->armed_now();
  return armed->accounts().tightest(armed->common_budgets_of(path));
}

std::vector<Injector::RuleCount> Injector::counts() const { return impl_->armed_now()->counts(); }

}  // namespace savegate::faults
