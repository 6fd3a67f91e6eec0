#include "scenarios/subjects/reference/state_file.h"

#include <nlohmann/json.hpp>

namespace savegate::reference {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson print_random(const std::vector<RandomStream>& streams) {
  OrderedJson json = OrderedJson::object();
  for (const RandomStream& stream : streams) {
    json[stream.name] = {{"seed", stream.seed}, {"drawn", stream.drawn}};
  }
  return json;
}

OrderedJson print_places(const std::vector<TensorPlace>& places) {
  OrderedJson json = OrderedJson::array();
  for (const TensorPlace& place : places) {
    json.push_back({{"name", place.name},
                    {"kind", place.kind},
                    {"global_shape", place.global_shape},
                    {"offset", place.offset}});
  }
  return json;
}

StateFile read_fields(const OrderedJson& json) {
  StateFile file;
  json.at("step").get_to(file.step);
  json.at("rank").get_to(file.rank);
  json.at("world").get_to(file.world);
  const OrderedJson& scheduler = json.at("scheduler");
  scheduler.at("base").get_to(file.scheduler.base);
  scheduler.at("current").get_to(file.scheduler.current);
  scheduler.at("decay").get_to(file.scheduler.decay);
  for (const auto& [name, stream] : json.at("random").items()) {
    file.random.push_back(
        {name, stream.at("seed").get<std::uint64_t>(), stream.at("drawn").get<std::uint64_t>()});
  }
  const OrderedJson& counters = json.at("counters");
  counters.at("global_step").get_to(file.counters.global_step);
  counters.at("optimizer_step").get_to(file.counters.optimizer_step);
  counters.at("effective_steps").get_to(file.counters.effective_steps);
  counters.at("data_cursor").get_to(file.counters.data_cursor);
  for (const OrderedJson& place : json.at("tensors")) {
    file.tensors.push_back(
        {place.at("name").get<std::string>(), place.at("kind").get<std::string>(),
         place.at("global_shape").get<gpu::Shape>(), place.at("offset").get<gpu::Shape>()});
  }
  return file;
}

}  // namespace

StateFile state_file_of(const State& state, int rank, int world) {
  StateFile file{.step = state.counters.global_step,
                 .rank = rank,
                 .world = world,
                 .scheduler = state.scheduler,
                 .random = state.random,
                 .counters = state.counters,
                 .tensors = {}};
  for (const NamedTensor& named : state.tensors) {
    file.tensors.push_back({named.name, named.kind, named.global_shape, named.offset});
  }
  return file;
}

std::string print_state_file(const StateFile& file) {
  const OrderedJson json = {{"format", 1},
                            {"step", file.step},
                            {"rank", file.rank},
                            {"world", file.world},
                            {"scheduler",
                             {{"base", file.scheduler.base},
                              {"current", file.scheduler.current},
                              {"decay", file.scheduler.decay}}},
                            {"random", print_random(file.random)},
                            {"counters",
                             {{"global_step", file.counters.global_step},
                              {"optimizer_step", file.counters.optimizer_step},
                              {"effective_steps", file.counters.effective_steps},
                              {"data_cursor", file.counters.data_cursor}}},
                            {"tensors", print_places(file.tensors)}};
  return json.dump(1) + "\n";
}

Result<StateFile> parse_state_file(const std::string& text, const std::string& path) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(invalid("the state file is no JSON", path));
  // The library throws where a key is missing or of another type; nothing of that leaves here.
  try {
    return read_fields(json);
  } catch (const OrderedJson::exception& error) {
    return fail(invalid(std::string("the state file is malformed: ") + error.what(), path));
  }
}

}  // namespace savegate::reference
