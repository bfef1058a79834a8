#include "tier/record.h"

#include <xxhash.h>

#include <cstring>
#include <limits>
#include <memory>

namespace coppice::tier {
namespace {

constexpr char kMagic[8] = {'C', 'o', 'p', 'p', 'i', 'c', 'e', 'B'};

struct RecordHeader {
  char magic[8];
  std::uint32_t version;
  std::int32_t begin;
  std::uint32_t n_tokens;
  std::uint32_t reserved;
  std::uint64_t payload_bytes;
  BlockId id;
  BlockId parent;
  XXH128_canonical_t checksum;  // of everything before it, the tokens and the payload
};
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes, "no padding");
constexpr std::size_t kCheckedBytes = offsetof(RecordHeader, checksum);

XXH128_canonical_t checksum_of(const RecordHeader& header, std::span<const std::byte> tokens,
                               std::span<const std::byte> payload) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), &header, kCheckedBytes);
  XXH3_128bits_update(state.get(), tokens.data(), tokens.size());
  XXH3_128bits_update(state.get(), payload.data(), payload.size());
  XXH128_canonical_t checksum;
  XXH128_canonicalFromHash(&checksum, XXH3_128bits_digest(state.get()));
  return checksum;
}

}  // namespace

std::vector<std::byte> record_head(const Block& block) {
  RecordHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kFormatVersion;
  header.begin = block.begin;
  header.n_tokens = static_cast<std::uint32_t>(block.tokens.size());
  header.payload_bytes = block.state->size();
  header.id = block.id;
  header.parent = block.parent;
  const auto tokens = std::as_bytes(std::span(block.tokens));
  header.checksum = checksum_of(header, tokens, *block.state);
  std::vector<std::byte> head(sizeof header + tokens.size());
  std::memcpy(head.data(), &header, sizeof header);
  std::memcpy(head.data() + sizeof header, tokens.data(), tokens.size());
  return head;
}

std::span<const std::byte> record_mark() { return std::as_bytes(std::span(kMagic)); }

std::optional<std::size_t> record_head_size(std::span<const std::byte> beginning) {
  RecordHeader header{};
  if (beginning.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, beginning.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 || header.version != kFormatVersion) return std::nullopt;
  return sizeof header + std::size_t{header.n_tokens} * sizeof(Token);
}

std::optional<RecordHead> parse_record_head(std::span<const std::byte> head) {
  if (record_head_size(head) != head.size()) return std::nullopt;
  RecordHeader header{};
  std::memcpy(&header, head.data(), sizeof header);
  RecordHead parsed{.block = {.id = header.id,
                              .parent = header.parent,
                              .begin = header.begin,
                              .tokens = Tokens(header.n_tokens),
                              .state = nullptr},
                    .payload_bytes = header.payload_bytes};
  std::memcpy(parsed.block.tokens.data(), head.data() + sizeof header, head.size() - sizeof header);
  return parsed;
}

Result<Block> parse_record(std::span<const std::byte> head, Payload payload) {
  RecordHeader header{};
  if (head.size() < sizeof header) return fail(ErrorKind::internal, "the record is shorter than its header");
  std::memcpy(&header, head.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return fail(ErrorKind::internal, "there is no record");
  if (header.version != kFormatVersion) return fail(ErrorKind::internal, "the record has another version");
  const auto tokens = head.subspan(sizeof header);
  if (tokens.size() != std::uint64_t{header.n_tokens} * sizeof(Token) || header.payload_bytes != payload->size()) {
    return fail(ErrorKind::internal, "the record has another length than the index says");
  }
  const XXH128_canonical_t checksum = checksum_of(header, tokens, *payload);
  if (std::memcmp(&checksum, &header.checksum, sizeof checksum) != 0) {
    return fail(ErrorKind::internal, "the record's checksum is wrong");
  }
  Block block{.id = header.id,
              .parent = header.parent,
              .begin = header.begin,
              .tokens = Tokens(header.n_tokens),
              .state = std::move(payload)};
  std::memcpy(block.tokens.data(), tokens.data(), tokens.size());
  return block;
}

}  // namespace coppice::tier
