#include "faults/toml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace savegate::faults {
namespace {

// What all readers of one document share.
struct Document {
  std::string source_name;
  toml::table root;
  std::optional<Status> error;
  bool error_is_missing_key = false;  // a misspelt key explains it better, if there is one
};

Status at_position(const std::string& source_name, const toml::source_region& region,
                   std::string text) {
  return invalid(std::move(text),
                 fmt::format("{}:{}:{}", source_name, region.begin.line, region.begin.column));
}

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return std::to_string(integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

}  // namespace

struct TomlNode {
  std::shared_ptr<Document> document;
  const toml::table* table = nullptr;
  std::string label;  // "[[rule]]"; "" for the top level
  std::string path;   // "rule"
  std::vector<std::string> asked;
  std::vector<std::shared_ptr<TomlNode>> children;

  std::string place() const { return label.empty() ? "at the top level" : "in " + label; }

  void keep(Status status, bool missing_key = false) const {
    if (document->error) return;
    document->error = std::move(status);
    document->error_is_missing_key = missing_key;
  }

  void error(const toml::node& where, std::string text) const {
    keep(at_position(document->source_name, where.source(), std::move(text)));
  }

  void wrong_type(std::string_view key, const toml::node& found, std::string_view wanted) const {
    error(found, fmt::format("`{}` {} must be {}, not {}", key, place(), wanted, type_name(found)));
  }

  const toml::node* ask(std::string_view key) {
    if (std::find(asked.begin(), asked.end(), key) == asked.end()) asked.emplace_back(key);
    return table->get(key);
  }

  // Errors of a key's value begin at the value; those of the table at the table.
  const toml::node& position_of(std::string_view key) const {
    const toml::node* found = key.empty() ? nullptr : table->get(key);
    return found == nullptr ? *table : *found;
  }

  std::shared_ptr<TomlNode> child(std::string_view key, const toml::table& of, bool in_array) {
    auto node = std::make_shared<TomlNode>();
    node->document = document;
    node->table = &of;
    node->path = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    node->label = fmt::format(fmt::runtime(in_array ? "[[{}]]" : "[{}]"), node->path);
    children.push_back(node);
    return node;
  }

  std::optional<Status> unknown_key() const {
    const toml::key* first = nullptr;
    for (const auto& [key, value] : *table) {
      if (std::find(asked.begin(), asked.end(), key.str()) != asked.end()) continue;
      if (first == nullptr || key.source().begin < first->source().begin) first = &key;
    }
    if (first != nullptr) {
      std::string hint = did_you_mean(first->str(), asked);
      if (hint.empty() && !asked.empty()) hint = fmt::format("; valid: {}", fmt::join(asked, ", "));
      return at_position(document->source_name, first->source(),
                         fmt::format("unknown key `{}` {}{}", first->str(), place(), hint));
    }
    for (const auto& node : children) {
      if (auto status = node->unknown_key()) return status;
    }
    return std::nullopt;
  }
};

bool TomlReader::has(std::string_view key) const { return node_->table->contains(key); }

bool TomlReader::is_table(std::string_view key) const {
  const toml::node* found = node_->table->get(key);
  return found != nullptr && found->is_table();
}

bool TomlReader::is_boolean(std::string_view key) const {
  const toml::node* found = node_->table->get(key);
  return found != nullptr && found->is_boolean();
}

std::string TomlReader::required_string(std::string_view key) {
  if (node_->ask(key) == nullptr) {
    error_missing(fmt::format("missing key `{}` {}", key, node_->place()));
    return "";
  }
  return string(key);
}

std::string TomlReader::string(std::string_view key, std::string_view otherwise) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return std::string(otherwise);
  if (const auto* text = found->as_string()) return text->get();
  node_->wrong_type(key, *found, "a string");
  return std::string(otherwise);
}

std::string TomlReader::word(std::string_view key, const std::vector<std::string>& valid,
                             std::string_view otherwise) {
  std::string found = string(key, otherwise);
  if (!has(key) || std::find(valid.begin(), valid.end(), found) != valid.end()) return found;
  std::string hint = did_you_mean(found, valid);
  if (hint.empty()) hint = fmt::format("; valid: {}", fmt::join(valid, ", "));
  error_at(key, fmt::format("`{}` {} cannot be `{}`{}", key, node_->place(), found, hint));
  return std::string(otherwise);
}

std::int64_t TomlReader::integer(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                 std::int64_t most) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return otherwise;
  const auto* integer = found->as_integer();
  if (integer == nullptr) {
    node_->wrong_type(key, *found, "an integer");
    return otherwise;
  }
  if (integer->get() < least || integer->get() > most) {
    node_->error(*found, fmt::format("`{}` {} must be between {} and {}, not {}", key,
                                     node_->place(), least, most, integer->get()));
    return otherwise;
  }
  return integer->get();
}

double TomlReader::number(std::string_view key, double otherwise, double least, double most) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return otherwise;
  if (!found->is_number()) {
    node_->wrong_type(key, *found, "a number");
    return otherwise;
  }
  const double value = found->value<double>().value_or(otherwise);
  if (!(value >= least && value <= most)) {
    node_->error(*found, fmt::format("`{}` {} must be between {} and {}, not {}", key,
                                     node_->place(), least, most, value));
    return otherwise;
  }
  return value;
}

bool TomlReader::boolean(std::string_view key, bool otherwise) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return otherwise;
  if (const auto* value = found->as_boolean()) return value->get();
  node_->wrong_type(key, *found, "true or false");
  return otherwise;
}

std::vector<std::string> TomlReader::strings(std::string_view key) {
  std::vector<std::string> values;
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return values;
  auto add = [&](const toml::node& item) {
    if (const auto* text = item.as_string()) {
      values.push_back(text->get());
    } else {
      node_->wrong_type(key, item, "a string or an array of strings");
    }
  };
  if (const auto* array = found->as_array()) {
    for (const toml::node& item : *array) add(item);
  } else {
    add(*found);
  }
  return values;
}

std::vector<std::int64_t> TomlReader::integers(std::string_view key) {
  std::vector<std::int64_t> values;
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return values;
  auto add = [&](const toml::node& item) {
    if (const auto* integer = item.as_integer()) {
      values.push_back(integer->get());
    } else {
      node_->wrong_type(key, item, "an integer or an array of integers");
    }
  };
  if (const auto* array = found->as_array()) {
    for (const toml::node& item : *array) add(item);
  } else {
    add(*found);
  }
  return values;
}

std::string TomlReader::text(std::string_view key) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return "";
  if (auto value = scalar_text(*found)) return *value;
  node_->wrong_type(key, *found, "a string or a number");
  return "";
}

std::vector<std::string> TomlReader::texts(std::string_view key) {
  const toml::node* found = node_->ask(key);
  std::vector<std::string> values;
  if (found == nullptr) return values;
  const auto* array = found->as_array();
  if (array == nullptr) {
    node_->wrong_type(key, *found, "an array of strings or numbers");
    return values;
  }
  for (const toml::node& item : *array) {
    if (auto value = scalar_text(item)) {
      values.push_back(*std::move(value));
    } else {
      node_->wrong_type(key, item, "an array of strings or numbers");
    }
  }
  return values;
}

std::optional<TomlReader> TomlReader::table(std::string_view key) {
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* table = found->as_table()) {
    return TomlReader(node_->child(key, *table, /*in_array=*/false));
  }
  node_->wrong_type(key, *found, "a table");
  return std::nullopt;
}

std::vector<TomlReader> TomlReader::tables(std::string_view key) {
  std::vector<TomlReader> readers;
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return readers;
  const auto* array = found->as_array();
  if (array == nullptr) {
    node_->wrong_type(key, *found, "an array of tables");
    return readers;
  }
  for (const toml::node& item : *array) {
    if (const auto* table = item.as_table()) {
      readers.emplace_back(node_->child(key, *table, /*in_array=*/true));
    } else {
      node_->wrong_type(key, item, "an array of tables");
    }
  }
  return readers;
}

std::vector<std::pair<std::string, std::string>> TomlReader::string_map(std::string_view key) {
  std::vector<std::pair<std::string, std::string>> values;
  const toml::node* found = node_->ask(key);
  if (found == nullptr) return values;
  const auto* table = found->as_table();
  if (table == nullptr) {
    node_->wrong_type(key, *found, "a table of strings, numbers or booleans");
    return values;
  }
  for (const auto& [name, value] : *table) {
    if (const auto* boolean = value.as_boolean()) {
      values.emplace_back(name.str(), boolean->get() ? "true" : "false");
    } else if (auto scalar = scalar_text(value)) {
      values.emplace_back(name.str(), *std::move(scalar));
    } else {
      node_->error(value, fmt::format("`{}.{}` {} must be a string, a number or a boolean, not {}",
                                      key, name.str(), node_->place(), type_name(value)));
    }
  }
  return values;
}

void TomlReader::error_at(std::string_view key, std::string text) {
  node_->error(node_->position_of(key), std::move(text));
}

void TomlReader::error_missing(std::string text) {
  node_->keep(at_position(node_->document->source_name, node_->table->source(), std::move(text)),
              /*missing_key=*/true);
}

std::string TomlReader::where() const {
  const toml::source_position& begin = node_->table->source().begin;
  return fmt::format("{}:{}:{}", node_->document->source_name, begin.line, begin.column);
}

Result<void> TomlReader::finish() {
  auto& document = *node_->document;
  if (document.error && !document.error_is_missing_key) return fail(*document.error);
  if (auto unknown = node_->unknown_key()) {
    document.error = std::move(*unknown);
    document.error_is_missing_key = false;
  }
  if (document.error) return fail(*document.error);
  return {};
}

TomlReader TomlDocument::root() const { return TomlReader(node_); }

Result<TomlDocument> parse_toml(std::string_view text, std::string_view source_name) {
  toml::parse_result parsed = toml::parse(text, source_name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(
        at_position(std::string(source_name), error.source(), std::string(error.description())));
  }
  auto document = std::make_shared<Document>();
  document->source_name = source_name;
  document->root = std::move(parsed).table();
  auto node = std::make_shared<TomlNode>();
  node->table = &document->root;
  node->document = std::move(document);
  return TomlDocument(std::move(node));
}

}  // namespace savegate::faults
