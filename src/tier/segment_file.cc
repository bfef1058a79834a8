#include "tier/segment_file.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "tier/payload.h"
#include "tier/record.h"

namespace coppice::tier {

std::string segment_name(const SegmentName& name) {
  return fmt::format("{:08}.{}", name.number, name.named_open ? "open" : "seg");
}

std::optional<SegmentName> parse_segment_name(std::string_view name) {
  SegmentName parsed;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.number);
  const std::string_view suffix = name.substr(static_cast<std::size_t>(end - name.data()));
  parsed.named_open = suffix == ".open";
  if (error != std::errc{} || parsed.number == 0 || (!parsed.named_open && suffix != ".seg")) return std::nullopt;
  return parsed;
}

Result<Block> read_record(FileSystem& files, const std::string& path, const RecordPlace& place, const BlockId& id) {
  std::vector<std::byte> head(place.record_bytes - place.payload_bytes);
  std::vector<std::byte> payload = take_buffer(place.payload_bytes);
  const auto head_read = files.read(path, place.offset, head);
  if (!head_read) return std::unexpected(head_read.error());
  const auto payload_read = files.read(path, place.offset + head.size(), payload);
  if (!payload_read) return std::unexpected(payload_read.error());
  if (*head_read + *payload_read != place.record_bytes) {
    return fail(ErrorKind::internal, "the segment ends inside the record");
  }
  auto block = parse_record(head, make_payload(std::move(payload)));
  if (!block) return block;
  // A record that is whole, but of another block: the index is wrong.
  if (block->id != id || !names(id, block->parent, block->tokens)) {
    return fail(ErrorKind::internal, "the record is another block's");
  }
  return block;
}

}  // namespace coppice::tier
