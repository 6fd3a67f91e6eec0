#include "reports/html_text.h"

#include <fmt/format.h>

#include <array>

namespace savegate::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// U+202A to U+202E and U+2066 to U+2069: what follows would be shown in another order.
bool turns_direction(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(text[1]);
  const auto third = static_cast<unsigned char>(text[2]);
  return (second == 0x80 && third >= 0xAA && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

// Bytes of the UTF-8 character at the front, 0 where there is none.
std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80    ? 1
                           : first < 0xC2  ? 0
                           : first < 0xE0  ? 2
                           : first < 0xF0  ? 3
                           : first <= 0xF4 ? 4
                                           : 0;
  if (size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) return 0;
  return size;
}

}  // namespace

std::string html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const char c = text[0];
    const bool control =
        size == 1 &&
        ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == '\x7f');
    if (size == 0 || control || turns_direction(text)) {
      out += kReplacement;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string link_path(std::string_view path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  std::string out;
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string_view outcome_sign(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kSigns = {"✓", "✗", "?", "–"};
  return kSigns[static_cast<std::size_t>(outcome)];
}

std::string outcome_badge(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kClasses = {"pass", "fail", "invalid", "skip"};
  return fmt::format("<b class=\"o {}\"><i aria-hidden=\"true\">{}</i>{}</b>",
                     kClasses[static_cast<std::size_t>(outcome)], outcome_sign(outcome),
                     outcome_name(outcome));
}

std::string seconds_text(double seconds) {
  if (seconds >= 100) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} µs", seconds * 1e6);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace savegate::reports
