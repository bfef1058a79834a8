#include "tier/export_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "tier/record.h"

namespace coppice::tier {

class RunningChecksum {
 public:
  RunningChecksum() : state_(XXH3_createState(), XXH3_freeState) { XXH3_128bits_reset(state_.get()); }
  void add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  XXH128_canonical_t value() const {
    XXH128_canonical_t value;
    XXH128_canonicalFromHash(&value, XXH3_128bits_digest(state_.get()));
    return value;
  }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

namespace {

constexpr char kExportMagic[8] = {'C', 'o', 'p', 'p', 'i', 'c', 'e', 'X'};
constexpr std::uint64_t kTextBytesMax = std::uint64_t{64} << 20;  // of one text record

struct ExportHeader {
  char magic[8];
  std::uint32_t version, record_version;
  std::int32_t full_tokens;
  std::uint32_t reserved;
};
static_assert(sizeof(ExportHeader) == 24, "no padding");

enum FrameKind : std::uint32_t { kBlockFrame = 1, kRecordFrame = 2, kEndFrame = 3 };
struct Frame {
  std::uint32_t kind, reserved;
  std::uint64_t bytes;  // that follow
};
struct BlockPrefix {
  std::uint64_t last_use;
  std::uint32_t uses;
  std::uint32_t head_bytes;  // of the record: header and tokens
};
struct TextPrefix {
  std::uint32_t kind_bytes, key_bytes;
};
struct EndBody {
  std::uint64_t n_blocks, n_records;
  XXH128_canonical_t checksum;  // of every byte before it
};
static_assert(sizeof(Frame) == 16 && sizeof(BlockPrefix) == 16 && sizeof(TextPrefix) == 8 && sizeof(EndBody) == 32);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

std::unexpected<Error> damaged(const char* why) { return invalid(fmt::format("the file is damaged: {}", why)); }

}  // namespace

ExportWriter::ExportWriter(FileSystem& files, std::string path)
    : files_(files),
      path_(std::move(path)),
      part_path_(path_ + ".part"),
      checksum_(std::make_unique<RunningChecksum>()) {}

ExportWriter::~ExportWriter() {
  file_ = nullptr;
  if (!finished_) (void)files_.remove(part_path_);
}

Result<std::unique_ptr<ExportWriter>> ExportWriter::create(FileSystem& files, const std::string& path,
                                                           TokenPos full_tokens) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return invalid(fmt::format("{} is there already", path));
  std::unique_ptr<ExportWriter> writer(new ExportWriter(files, path));
  (void)files.remove(writer->part_path_);  // of an export that was stopped
  auto file = files.create(writer->part_path_);
  if (!file) return std::unexpected(file.error());
  writer->file_ = std::move(*file);
  ExportHeader header{};
  std::memcpy(header.magic, kExportMagic, sizeof kExportMagic);
  header.version = kExportVersion;
  header.record_version = kFormatVersion;
  header.full_tokens = full_tokens;
  if (auto done = writer->append(bytes_of(header)); !done) return std::unexpected(done.error());
  return writer;
}

Result<void> ExportWriter::append(std::span<const std::byte> bytes) {
  checksum_->add(bytes);
  return file_->append(bytes);
}

Result<void> ExportWriter::append_frame(std::uint32_t kind, std::uint64_t bytes) {
  const Frame frame{.kind = kind, .reserved = 0, .bytes = bytes};
  return append(bytes_of(frame));
}

Result<void> ExportWriter::add(const Block& block, const BlockUse& use) {
  const std::vector<std::byte> head = record_head(block);
  const BlockPrefix prefix{
      .last_use = use.order, .uses = use.uses, .head_bytes = static_cast<std::uint32_t>(head.size())};
  auto done = append_frame(kBlockFrame, sizeof prefix + head.size() + block.state->size());
  if (done) done = append(bytes_of(prefix));
  if (done) done = append(head);
  if (done) done = append(*block.state);
  ++n_blocks_;
  return done;
}

Result<void> ExportWriter::add(const RecordChange& record) {
  const TextPrefix prefix{.kind_bytes = static_cast<std::uint32_t>(record.kind.size()),
                          .key_bytes = static_cast<std::uint32_t>(record.key.size())};
  const std::string text = record.kind + record.key + *record.value;
  auto done = append_frame(kRecordFrame, sizeof prefix + text.size());
  if (done) done = append(bytes_of(prefix));
  if (done) done = append(std::as_bytes(std::span(text)));
  ++n_records_;
  return done;
}

Result<void> ExportWriter::finish() {
  auto done = append_frame(kEndFrame, sizeof(EndBody));
  EndBody end{.n_blocks = n_blocks_, .n_records = n_records_, .checksum = {}};
  const auto counts = bytes_of(end).first(offsetof(EndBody, checksum));
  if (done) done = append(counts);
  end.checksum = checksum_->value();
  if (done) done = file_->append(bytes_of(end).subspan(counts.size()));
  if (done) done = file_->sync();
  if (done) done = files_.rename(part_path_, path_);
  finished_ = done.has_value();
  return done;
}

ExportReader::ExportReader(FileSystem& files, std::string path, std::uint64_t bytes)
    : files_(files), path_(std::move(path)), bytes_(bytes), checksum_(std::make_unique<RunningChecksum>()) {}

ExportReader::~ExportReader() = default;

Result<std::unique_ptr<ExportReader>> ExportReader::open(FileSystem& files, const std::string& path) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) return invalid(fmt::format("{} cannot be read: {}", path, error.message()));
  std::unique_ptr<ExportReader> reader(new ExportReader(files, path, bytes));
  if (auto done = reader->take_header(); !done) return std::unexpected(done.error());
  return reader;
}

Result<void> ExportReader::take_header() {
  ExportHeader header{};
  const bool whole = left() >= sizeof header;
  if (whole) {
    if (auto done = take(room_of(header)); !done) return done;
  }
  if (!whole || std::memcmp(header.magic, kExportMagic, sizeof kExportMagic) != 0) {
    return invalid(fmt::format("{} is no export of Coppice's", path_));
  }
  if (header.version != kExportVersion || header.record_version != kFormatVersion) {
    return invalid(fmt::format("{} has format {}.{}, and this version knows {}.{}", path_, header.version,
                               header.record_version, kExportVersion, kFormatVersion));
  }
  if (header.full_tokens < 0) return damaged("its header is wrong");
  full_tokens_ = header.full_tokens;
  return {};
}

Result<void> ExportReader::take(std::span<std::byte> to) {
  if (to.size() > left()) return damaged("it ends too early");
  const auto n = files_.read(path_, at_, to);
  if (!n) return std::unexpected(n.error());
  if (*n != to.size()) return damaged("it ends too early");
  at_ += to.size();
  checksum_->add(to);
  return {};
}

Result<ExportEntry> ExportReader::next() {
  Frame frame{};
  if (auto done = take(room_of(frame)); !done) return std::unexpected(done.error());
  if (frame.bytes > left()) return damaged("it ends too early");
  switch (frame.kind) {
    case kBlockFrame: return take_block(frame.bytes);
    case kRecordFrame: return take_record(frame.bytes);
    case kEndFrame: return take_end(frame.bytes);
    default: return damaged("an entry's kind is unknown");
  }
}

Result<ExportEntry> ExportReader::take_block(std::uint64_t bytes) {
  BlockPrefix prefix{};
  if (bytes < sizeof prefix) return damaged("a block is too short");
  if (auto done = take(room_of(prefix)); !done) return std::unexpected(done.error());
  if (prefix.head_bytes < kRecordHeaderBytes || prefix.head_bytes > bytes - sizeof prefix) {
    return damaged("a block is too short");
  }
  std::vector<std::byte> head(prefix.head_bytes);
  if (auto done = take(head); !done) return std::unexpected(done.error());
  auto payload = std::make_shared<std::vector<std::byte>>(bytes - sizeof prefix - head.size());
  if (auto done = take(*payload); !done) return std::unexpected(done.error());
  auto block = parse_record(head, std::move(payload));
  if (!block) return damaged(block.error().message.c_str());
  if (block->tokens.empty() || block->begin < 0 || !names(block->id, block->parent, block->tokens)) {
    return damaged("a block's name is not that of its tokens");
  }
  ++n_blocks_;
  const BlockId id = block->id;
  return ExportedBlock{std::move(*block), {id, prefix.last_use, prefix.uses}};
}

Result<ExportEntry> ExportReader::take_record(std::uint64_t bytes) {
  TextPrefix prefix{};
  if (bytes < sizeof prefix || bytes > kTextBytesMax) return damaged("a text has a wrong length");
  if (auto done = take(room_of(prefix)); !done) return std::unexpected(done.error());
  std::string text(bytes - sizeof prefix, '\0');
  if (std::uint64_t{prefix.kind_bytes} + prefix.key_bytes > text.size()) return damaged("a text has a wrong length");
  if (auto done = take(std::as_writable_bytes(std::span(text))); !done) return std::unexpected(done.error());
  ++n_records_;
  return RecordChange{text.substr(0, prefix.kind_bytes), text.substr(prefix.kind_bytes, prefix.key_bytes),
                      text.substr(std::size_t{prefix.kind_bytes} + prefix.key_bytes)};
}

Result<ExportEntry> ExportReader::take_end(std::uint64_t bytes) {
  EndBody end{};
  if (bytes != sizeof end || left() != sizeof end) return damaged("its end is not where it should be");
  const auto counts = room_of(end).first(offsetof(EndBody, checksum));
  if (auto done = take(counts); !done) return std::unexpected(done.error());
  const XXH128_canonical_t expected = checksum_->value();
  if (auto done = take(room_of(end).subspan(counts.size())); !done) return std::unexpected(done.error());
  if (std::memcmp(&expected, &end.checksum, sizeof expected) != 0) return damaged("its checksum is wrong");
  if (end.n_blocks != n_blocks_ || end.n_records != n_records_) return damaged("entries are missing");
  return ExportEnd{};
}

}  // namespace coppice::tier
