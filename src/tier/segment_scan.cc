#include "tier/segment_scan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tier/record.h"

namespace coppice::tier {
namespace {

// Header and tokens of a usual block in one read.
constexpr std::size_t kHeadBytes = kRecordHeaderBytes + 256 * sizeof(Token);
constexpr std::size_t kSearchBytes = std::size_t{1} << 20;

// Reads parts of one segment.
class SegmentView {
 public:
  SegmentView(FileSystem& files, std::string path, std::uint64_t bytes)
      : files_(files), path_(std::move(path)), bytes_(bytes) {}

  std::uint64_t bytes() const { return bytes_; }
  // Fewer bytes at the end of the file.
  Result<std::vector<std::byte>> read(std::uint64_t offset, std::size_t count) {
    std::vector<std::byte> bytes(std::min<std::uint64_t>(count, bytes_ - std::min(bytes_, offset)));
    const auto n = files_.read(path_, offset, bytes);
    if (!n) return std::unexpected(n.error());
    bytes.resize(*n);
    return bytes;
  }

 private:
  FileSystem& files_;
  std::string path_;
  std::uint64_t bytes_;
};

// The record that begins there, if one does and all of it is there.
Result<std::optional<IndexRow>> record_at(SegmentView& view, std::uint64_t offset) {
  auto head = view.read(offset, kHeadBytes);
  if (!head) return std::unexpected(head.error());
  const std::uint64_t left = view.bytes() - offset;
  const auto size = record_head_size(*head);
  if (!size || *size > left) return std::nullopt;
  if (*size > head->size()) {
    head = view.read(offset, *size);
    if (!head) return std::unexpected(head.error());
    if (head->size() < *size) return std::nullopt;
  }
  auto parsed = parse_record_head(std::span(*head).first(*size));
  if (!parsed || parsed->payload_bytes > left - *size) return std::nullopt;
  const Block& block = parsed->block;
  if (block.tokens.empty() || block.begin < 0 || !names(block.id, block.parent, block.tokens)) return std::nullopt;
  IndexRow row;
  row.block = std::move(parsed->block);
  row.offset = offset;
  row.payload_bytes = parsed->payload_bytes;
  row.record_bytes = *size + parsed->payload_bytes;
  row.use.id = row.block.id;
  return row;
}

// Where the next record may begin, from `offset` on; the end if there is none.
Result<std::uint64_t> find_record(SegmentView& view, std::uint64_t offset) {
  const auto mark = record_mark();
  while (offset + kRecordHeaderBytes <= view.bytes()) {
    const auto bytes = view.read(offset, kSearchBytes);
    if (!bytes) return std::unexpected(bytes.error());
    const auto found = std::ranges::search(*bytes, mark);
    if (!found.empty()) return offset + static_cast<std::uint64_t>(found.begin() - bytes->begin());
    if (bytes->size() <= mark.size()) break;
    offset += bytes->size() - mark.size() + 1;
  }
  return view.bytes();
}

}  // namespace

Result<std::vector<SegmentFacts>> segments_in(FileSystem& files, const std::string& dir) {
  const auto listed = files.list(dir);
  if (!listed) return std::unexpected(listed.error());
  std::vector<SegmentFacts> segments;
  for (const FileInfo& file : *listed) {
    if (const auto name = parse_segment_name(file.name)) segments.push_back({*name, file.bytes});
  }
  std::ranges::sort(segments, {}, [](const SegmentFacts& s) { return s.name.number; });
  return segments;
}

Result<std::vector<IndexRow>> scan_segment(FileSystem& files, const std::string& dir, const SegmentFacts& segment) {
  SegmentView view(files, dir + "/" + segment_name(segment.name), segment.bytes);
  std::vector<IndexRow> rows;
  for (std::uint64_t offset = 0; offset < view.bytes();) {
    auto record = record_at(view, offset);
    if (!record) return std::unexpected(record.error());
    if (*record) {
      (*record)->segment = segment.name.number;
      offset += (*record)->record_bytes;
      rows.push_back(*std::move(*record));
      continue;
    }
    const auto next = find_record(view, offset + 1);
    if (!next) return std::unexpected(next.error());
    offset = *next;
  }
  return rows;
}

}  // namespace coppice::tier
