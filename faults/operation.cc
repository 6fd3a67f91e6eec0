#include "faults/operation.h"

#include <array>

namespace savegate::faults {
namespace {

struct OpWord {
  std::string_view name;
  OpClass op_class;
};

// In the order of Op.
constexpr std::array<OpWord, kOpCount> kOps = {{
    {"lookup", OpClass::kQuery},
    {"getattr", OpClass::kQuery},
    {"access", OpClass::kQuery},
    {"readlink", OpClass::kQuery},
    {"statfs", OpClass::kQuery},
    {"opendir", OpClass::kQuery},
    {"readdir", OpClass::kQuery},
    {"releasedir", OpClass::kQuery},
    {"create", OpClass::kMetadata},
    {"open", OpClass::kQuery},
    {"read", OpClass::kData},
    {"write", OpClass::kData},
    {"truncate", OpClass::kMetadata},
    {"fallocate", OpClass::kData},
    {"copy_file_range", OpClass::kData},
    {"lseek", OpClass::kQuery},
    {"close", OpClass::kSync},
    {"release", OpClass::kQuery},
    {"fsync", OpClass::kSync},
    {"fsyncdir", OpClass::kSync},
    {"mkdir", OpClass::kMetadata},
    {"mknod", OpClass::kMetadata},
    {"rmdir", OpClass::kMetadata},
    {"unlink", OpClass::kMetadata},
    {"rename", OpClass::kMetadata},
    {"link", OpClass::kMetadata},
    {"symlink", OpClass::kMetadata},
    {"chmod", OpClass::kMetadata},
    {"chown", OpClass::kMetadata},
    {"utimens", OpClass::kMetadata},
    {"getxattr", OpClass::kQuery},
    {"setxattr", OpClass::kMetadata},
    {"listxattr", OpClass::kQuery},
    {"removexattr", OpClass::kMetadata},
    {"lock", OpClass::kQuery},
    {"phase", OpClass::kPhase},
}};

constexpr std::array<std::string_view, 5> kClasses = {"data", "metadata", "sync", "query", "phase"};
constexpr std::array<std::string_view, 4> kRelations = {"none", "process", "thread", "child"};

}  // namespace

std::string_view op_name(Op op) { return kOps[static_cast<std::size_t>(op)].name; }

std::optional<Op> op_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

OpClass op_class(Op op) { return kOps[static_cast<std::size_t>(op)].op_class; }

std::string_view op_class_name(OpClass op_class) {
  return kClasses[static_cast<std::size_t>(op_class)];
}

std::optional<OpClass> op_class_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    if (kClasses[i] == name) return static_cast<OpClass>(i);
  }
  return std::nullopt;
}

std::string_view relation_name(Relation relation) {
  return kRelations[static_cast<std::size_t>(relation)];
}

}  // namespace savegate::faults
