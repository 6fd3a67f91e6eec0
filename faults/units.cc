#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <csignal>

#include "faults/plan.h"

namespace savegate::faults {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, so that printing takes the first that divides.
constexpr std::array kByteUnits = {
    Unit{"TiB", std::uint64_t{1} << 40},
    Unit{"GiB", std::uint64_t{1} << 30},
    Unit{"MiB", std::uint64_t{1} << 20},
    Unit{"KiB", std::uint64_t{1} << 10},
    Unit{"TB", 1'000'000'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"MB", 1'000'000},
    Unit{"KB", 1'000},
    Unit{"kB", 1'000},
    Unit{"B", 1},
};
constexpr std::size_t kBinaryUnits = 4;  // how many of kByteUnits are printed

constexpr std::array kDurationUnits = {
    Unit{"h", 3'600'000'000'000}, Unit{"min", 60'000'000'000}, Unit{"s", 1'000'000'000},
    Unit{"ms", 1'000'000},        Unit{"us", 1'000},           Unit{"ns", 1},
    Unit{"m", 60'000'000'000},
};

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<double> real_number(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [stop, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// number × factor, where that is a whole number that fits.
std::optional<std::uint64_t> scaled(std::string_view number, std::uint64_t factor) {
  if (auto whole = whole_number(number)) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(*whole, factor, &product)) return std::nullopt;
    return product;
  }
  const auto real = real_number(number);
  if (!real || *real < 0) return std::nullopt;
  const double product = *real * static_cast<double>(factor);
  constexpr double kMost = 9007199254740992.0;  // above it not every whole number is a double
  if (product != std::floor(product) || product > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(product);
}

template <std::size_t kCount>
std::optional<std::uint64_t> quantity(std::string_view text,
                                      const std::array<Unit, kCount>& units) {
  const std::size_t begin = text.find_first_not_of("0123456789.");
  if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
  std::string_view number = text.substr(0, begin);
  std::string_view unit = text.substr(begin);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (known.name == unit) return scaled(number, known.factor);
  }
  return std::nullopt;
}

// The share that "12.5" percent is, rounded once: the decimal exponent is shifted, not divided by.
std::optional<double> share_of_percent(std::string_view percent) {
  const std::size_t e = percent.find('e');
  int exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view digits = percent.substr(e + 1);
    if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
    auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (failed != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  }
  return real_number(fmt::format("{}e{}", percent.substr(0, e), exponent - 2));
}

struct SignalWord {
  int signal;
  std::string_view name;
};

constexpr std::array kSignals = {
    SignalWord{SIGKILL, "SIGKILL"}, SignalWord{SIGTERM, "SIGTERM"}, SignalWord{SIGINT, "SIGINT"},
    SignalWord{SIGSTOP, "SIGSTOP"}, SignalWord{SIGCONT, "SIGCONT"}, SignalWord{SIGABRT, "SIGABRT"},
    SignalWord{SIGSEGV, "SIGSEGV"}, SignalWord{SIGBUS, "SIGBUS"},   SignalWord{SIGQUIT, "SIGQUIT"},
    SignalWord{SIGHUP, "SIGHUP"},   SignalWord{SIGUSR1, "SIGUSR1"}, SignalWord{SIGUSR2, "SIGUSR2"},
};

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
  if (auto plain = whole_number(text)) return *plain;
  if (auto bytes = quantity(text, kByteUnits)) return *bytes;
  return fail(invalid(fmt::format(
      "`{}` is no number of bytes; write 4096, \"64KiB\", \"1GiB\" or \"10MB\"", text)));
}

Result<std::uint64_t> parse_duration(std::string_view text) {
  if (auto nanoseconds = quantity(text, kDurationUnits)) return *nanoseconds;
  return fail(invalid(
      fmt::format("`{}` is no duration; write \"200ms\", \"1.5s\", \"10us\" or \"2min\"", text)));
}

Result<Amount> parse_amount(std::string_view text) {
  Amount amount;
  if (!text.empty() && text.back() == '%') {
    amount.share = share_of_percent(text.substr(0, text.size() - 1));
    if (amount.share && *amount.share >= 0 && *amount.share <= 1) return amount;
    return fail(invalid(fmt::format("`{}` is no share; write \"0%\" to \"100%\"", text)));
  }
  SAVEGATE_TRY(amount.bytes, parse_bytes(text));
  return amount;
}

Result<std::uint64_t> parse_rate(std::string_view text) {
  constexpr std::string_view kPerSecond = "/s";
  if (text.ends_with(kPerSecond)) {
    const auto bytes = parse_bytes(text.substr(0, text.size() - kPerSecond.size()));
    if (bytes && *bytes > 0) return *bytes;
  }
  return fail(invalid(fmt::format("`{}` is no rate; write \"100MiB/s\" or \"1GB/s\"", text)));
}

std::string print_rate(std::uint64_t bytes_per_second) {
  return print_bytes(bytes_per_second) + "/s";
}

std::string print_bytes(std::uint64_t bytes) {
  for (std::size_t i = 0; i < kBinaryUnits && bytes != 0; ++i) {
    if (bytes % kByteUnits[i].factor == 0) {
      return fmt::format("{}{}", bytes / kByteUnits[i].factor, kByteUnits[i].name);
    }
  }
  return std::to_string(bytes);
}

std::string print_duration(std::uint64_t nanoseconds) {
  for (const Unit& unit : kDurationUnits) {
    if (nanoseconds != 0 && nanoseconds % unit.factor == 0) {
      return fmt::format("{}{}", nanoseconds / unit.factor, unit.name);
    }
  }
  return "0s";
}

std::string print_amount(const Amount& amount) {
  if (!amount.share) return print_bytes(amount.bytes);
  for (const std::string& percent :
       {fmt::format("{:.6g}", *amount.share * 100), fmt::format("{:.15g}", *amount.share * 100)}) {
    if (share_of_percent(percent) == amount.share) return percent + "%";
  }
  // The shortest digits of the share itself, with the exponent shifted by two.
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), *amount.share,
                                 std::chars_format::scientific);
  const std::string_view digits(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t e = digits.find('e');
  int exponent = 0;
  std::string_view sign_and_exponent = digits.substr(e + 1);
  if (sign_and_exponent.front() == '+') sign_and_exponent.remove_prefix(1);
  std::from_chars(sign_and_exponent.data(), sign_and_exponent.data() + sign_and_exponent.size(),
                  exponent);
  return fmt::format("{}e{}%", digits.substr(0, e), exponent + 2);
}

std::uint64_t bytes_of(const Amount& amount, std::uint64_t length) {
  if (!amount.share) return std::min(amount.bytes, length);
  if (*amount.share >= 1) return length;
  return static_cast<std::uint64_t>(*amount.share * static_cast<double>(length));
}

std::string signal_name(int signal) {
  for (const SignalWord& word : kSignals) {
    if (word.signal == signal) return std::string(word.name);
  }
  return fmt::format("signal {}", signal);
}

std::optional<int> signal_from_name(std::string_view name) {
  for (const SignalWord& word : kSignals) {
    if (word.name == name) return word.signal;
  }
  return std::nullopt;
}

}  // namespace savegate::faults
