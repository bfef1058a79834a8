// Bytes and numbers as hexadecimal text: lower case, two digits a byte, the highest first. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace coppice {

inline std::string to_hex(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 0xFU];
  }
  return text;
}

inline std::string to_hex(std::uint64_t number) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(number >> (56U - 8U * i));
  return to_hex(bytes);
}

}  // namespace coppice
