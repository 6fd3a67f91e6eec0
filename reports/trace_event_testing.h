// For tests: whether a document keeps to the JSON trace-event format, as far as importers insist.
//
// Phases M, X, i and C with their fields and types; numbers of processes and threads as 32 bits
// hold them; and slices of one thread nest.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace savegate::reports {

class TraceEvents {
 public:
  // "" where it keeps to the format, else what does not and the first event of which this is so.
  std::string misfit(const nlohmann::json& document) {
    if (!document.is_object() || !document.contains("traceEvents")) return "no traceEvents";
    for (const auto& event : document["traceEvents"])
      if (const std::string what = misfit_of_event(event); !what.empty())
        return what + ": " + event.dump();
    return "";
  }

 private:
  using Json = nlohmann::json;

  static bool is_number_of_a_thread(const Json& event, const char* key) {
    return event.contains(key) && event[key].is_number_integer() && event[key] >= 0 &&
           event[key] <= INT32_MAX;
  }
  static bool is_time(const Json& event, const char* key) {
    return event.contains(key) && event[key].is_number() && event[key] >= 0;
  }

  std::string misfit_of_event(const Json& event) {
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string()) return "no ph";
    if (!event.contains("name") || !event["name"].is_string()) return "no name";
    if (!is_number_of_a_thread(event, "pid")) return "pid";
    if (!is_number_of_a_thread(event, "tid")) return "tid";
    if (event.contains("args") && !event["args"].is_object()) return "args";
    const std::string phase = event["ph"];
    if (phase == "M") return misfit_of_name(event);
    if (!is_time(event, "ts")) return "ts";
    if (phase == "X") return misfit_of_slice(event);
    if (phase == "i") return event.value("s", "") == "p" ? "" : "the scope of an instant";
    if (phase == "C") return misfit_of_counter(event);
    return "an unknown phase";
  }

  static std::string misfit_of_name(const Json& event) {
    if (event["name"] != "process_name" && event["name"] != "thread_name")
      return "unknown metadata";
    return event.contains("args") && event["args"].value("name", Json()).is_string() ? ""
                                                                                     : "args.name";
  }

  static std::string misfit_of_counter(const Json& event) {
    if (!event.contains("args") || event["args"].empty()) return "a counter without a series";
    for (const auto& [series, value] : event["args"].items())
      if (!value.is_number()) return "the series " + series + " is no number";
    return "";
  }

  std::string misfit_of_slice(const Json& event) {
    constexpr double kRounding = 1e-6;  // microseconds
    if (!is_time(event, "dur")) return "dur";
    const double begin = event["ts"];
    const double end = begin + event["dur"].get<double>();
    std::vector<double>& around = around_[{event["pid"], event["tid"]}];
    while (!around.empty() && around.back() <= begin + kRounding) around.pop_back();
    if (!around.empty() && end > around.back() + kRounding)
      return "a slice that ends after the one around it";
    around.push_back(end);
    return "";
  }

  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> around_;  // ends
};

inline std::string trace_event_misfit(const nlohmann::json& document) {
  return TraceEvents().misfit(document);
}

}  // namespace savegate::reports
