#include "tier/disk_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>

#include "obs/log.h"

namespace coppice::tier {
namespace {

constexpr int kIndexFormat = 1;  // PRAGMA user_version

// In row_of's order.
#define COPPICE_BLOCK_COLUMNS "id, parent, begin, tokens, segment, offset, record_bytes, payload_bytes, last_use, uses"

std::unexpected<Error> sqlite_error(sqlite3* db, const char* what) {
  const int code = db == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(db);
  Error e{ErrorKind::internal,
          fmt::format("{} the cache index: {}", what, db == nullptr ? "no memory" : sqlite3_errmsg(db)),
          {},
          {}};
  if ((code & 0xff) == SQLITE_FULL) e.code = "full";
  if ((code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB) e.code = "corrupt";
  return std::unexpected(std::move(e));
}

Result<void> execute(sqlite3* db, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite_error(db, "change");
  return {};
}

// A prepared statement, used for many rows. Binding copies nothing: what is bound outlives the step.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    if (sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool ok() const { return statement_ != nullptr; }
  Statement& bind(std::span<const std::byte> bytes) {
    sqlite3_bind_blob(statement_, ++n_bound_, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
    return *this;
  }
  Statement& bind(const BlockId& id) { return bind(std::as_bytes(std::span(id))); }
  Statement& bind(std::uint64_t value) {
    sqlite3_bind_int64(statement_, ++n_bound_, static_cast<sqlite3_int64>(value));
    return *this;
  }
  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++n_bound_, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
    return *this;
  }
  // One execution with what was bound.
  Result<void> run() {
    if (!ok() || sqlite3_step(statement_) != SQLITE_DONE) {
      auto error = sqlite_error(db_, "change");
      sqlite3_reset(statement_);
      return error;
    }
    sqlite3_reset(statement_);
    n_bound_ = 0;
    return {};
  }
  int step() { return sqlite3_step(statement_); }
  std::uint64_t number(int column) const {
    return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string text(int column) const {
    const auto* begin = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return begin == nullptr ? std::string() : std::string(begin, bytes(column));
  }
  std::size_t bytes(int column) const { return static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)); }
  // False if the column is not exactly so many bytes.
  bool copy(int column, void* to, std::size_t n) const {
    const void* from = sqlite3_column_blob(statement_, column);
    if (bytes(column) != n || from == nullptr) return false;
    std::memcpy(to, from, n);
    return true;
  }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int n_bound_ = 0;
};

// Of an index that is gone: SQLite would replay its log into the new one.
void remove_companions(const std::string& path) {
  std::remove((path + "-wal").c_str());
  std::remove((path + "-shm").c_str());
}

// None: a row that no block can have.
std::optional<IndexRow> row_of(const Statement& select) {
  IndexRow row;
  row.block.tokens.resize(select.bytes(3) / sizeof(Token));
  const bool ids = select.copy(0, row.block.id.data(), row.block.id.size()) &&
                   select.copy(1, row.block.parent.data(), row.block.parent.size());
  if (!ids || row.block.tokens.empty() ||
      !select.copy(3, row.block.tokens.data(), row.block.tokens.size() * sizeof(Token))) {
    return std::nullopt;
  }
  row.block.begin = static_cast<TokenPos>(select.number(2));
  row.segment = select.number(4);
  row.offset = select.number(5);
  row.record_bytes = select.number(6);
  row.payload_bytes = select.number(7);
  row.use = {row.block.id, select.number(8), static_cast<std::uint32_t>(select.number(9))};
  return row;
}

}  // namespace

std::uint64_t system_us() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
}

DiskIndex::~DiskIndex() { sqlite3_close(db_); }

Result<std::unique_ptr<DiskIndex>> DiskIndex::open(const std::string& path, bool check_all) {
  const auto attempt = [&]() -> Result<std::unique_ptr<DiskIndex>> {
    sqlite3* db = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (::access(path.c_str(), F_OK) != 0) remove_companions(path);
    // Prompts can be read from it: for this user alone, like the segments. SQLite's other files get the same rights.
    const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) {
      ::fchmod(file, 0600);
      ::close(file);
    }
    const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
    std::unique_ptr<DiskIndex> index(new DiskIndex(db));
    if (code != SQLITE_OK) return sqlite_error(db, "open");
    if (auto prepared = index->prepare(); !prepared) return std::unexpected(prepared.error());
    // Here rather than in the middle of a request: a page that cannot be read is found now.
    if (auto rows = index->rows(); !rows) return std::unexpected(rows.error());
    if (auto records = index->records(); !records) return std::unexpected(records.error());
    if (auto sound = check_all ? index->check() : Result<void>(); !sound) return std::unexpected(sound.error());
    return index;
  };
  auto index = attempt();
  if (index || index.error().code != "corrupt") return index;
  obs::log_warn("cache index put aside", "path={} reason=\"{}\"", path, index.error().message);
  std::rename(path.c_str(), (path + ".bad").c_str());
  return attempt();
}

Result<std::unique_ptr<DiskIndex>> DiskIndex::open_to_read(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return fail(ErrorKind::not_found, "there is no cache index");
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<DiskIndex> index(new DiskIndex(db));
  if (code != SQLITE_OK) return sqlite_error(db, "open");
  sqlite3_busy_timeout(db, 5000);
  const auto version = index->format();
  if (!version) return std::unexpected(version.error());
  if (*version == 0) return fail(ErrorKind::not_found, "there is no cache index");  // its maker has just begun
  return index;
}

// 0: it is new. Errors: another than ours.
Result<std::uint64_t> DiskIndex::format() {
  Statement version(db_, "PRAGMA user_version");
  if (!version.ok() || version.step() != SQLITE_ROW) return sqlite_error(db_, "read");
  const std::uint64_t format = version.number(0);
  if (format == 0 || format == kIndexFormat) return format;
  return invalid(fmt::format("the cache index has format {}, and this version knows {}", format, kIndexFormat));
}

Result<void> DiskIndex::check() {
  Statement check(db_, "PRAGMA quick_check(1)");
  if (!check.ok() || check.step() != SQLITE_ROW) return sqlite_error(db_, "check");
  const std::string text = check.text(0);
  if (text == "ok") return {};
  return std::unexpected(Error{ErrorKind::internal, "the cache index is damaged: " + text, {}, "corrupt"});
}

Result<void> DiskIndex::prepare() {
  sqlite3_busy_timeout(db_, 500);  // a person may look into it with another program
  // FULL: a commit is synced, so that what a flush promises survives a power cut.
  auto done = execute(db_, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;");
  if (!done) return done;
  const auto version = format();
  if (!version) return std::unexpected(version.error());
  is_new_ = *version == 0;
  return execute(db_,
                 "BEGIN;"
                 "CREATE TABLE IF NOT EXISTS blocks(id BLOB PRIMARY KEY, parent BLOB NOT NULL, begin INTEGER NOT NULL,"
                 " tokens BLOB NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL,"
                 " record_bytes INTEGER NOT NULL, payload_bytes INTEGER NOT NULL, last_use INTEGER NOT NULL,"
                 " uses INTEGER NOT NULL);"
                 "CREATE TABLE IF NOT EXISTS records(kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,"
                 " PRIMARY KEY(kind, key)) WITHOUT ROWID;"
                 "COMMIT;");
}

Result<void> DiskIndex::complete() {
  auto done = execute(db_, "PRAGMA user_version=1");
  if (done) is_new_ = false;
  return done;
}

Result<std::vector<IndexRow>> DiskIndex::rows() {
  Statement select(db_, "SELECT " COPPICE_BLOCK_COLUMNS " FROM blocks ORDER BY begin");
  if (!select.ok()) return sqlite_error(db_, "read");
  std::vector<IndexRow> rows;
  int code = SQLITE_ROW;
  while ((code = select.step()) == SQLITE_ROW) {
    if (auto row = row_of(select)) rows.push_back(std::move(*row));
  }
  if (code != SQLITE_DONE) return sqlite_error(db_, "read");
  return rows;
}

Result<std::optional<IndexRow>> DiskIndex::find(const BlockId& id) {
  Statement select(db_, "SELECT " COPPICE_BLOCK_COLUMNS " FROM blocks WHERE id=?");
  if (!select.ok()) return sqlite_error(db_, "read");
  const int code = select.bind(id).step();
  if (code == SQLITE_ROW) return row_of(select);
  if (code != SQLITE_DONE) return sqlite_error(db_, "read");
  return std::nullopt;
}

Result<std::vector<RecordChange>> DiskIndex::records() {
  Statement select(db_, "SELECT kind, key, value FROM records");
  if (!select.ok()) return sqlite_error(db_, "read");
  std::vector<RecordChange> records;
  int code = SQLITE_ROW;
  while ((code = select.step()) == SQLITE_ROW) {
    records.push_back({select.text(0), select.text(1), select.text(2)});
  }
  if (code != SQLITE_DONE) return sqlite_error(db_, "read");
  return records;
}

Result<void> DiskIndex::apply(const IndexChanges& changes) {
  if (auto begun = execute(db_, "BEGIN IMMEDIATE"); !begun) return begun;
  auto done = apply_all(changes);
  if (done) done = execute(db_, "COMMIT");
  if (!done && sqlite3_get_autocommit(db_) == 0) (void)execute(db_, "ROLLBACK");
  return done;
}

Result<void> DiskIndex::apply_all(const IndexChanges& changes) {
  Statement erase(db_, "DELETE FROM blocks WHERE id=?");
  for (const BlockId& id : changes.erase) {
    if (auto done = erase.bind(id).run(); !done) return done;
  }
  Statement insert(db_, "INSERT OR REPLACE INTO blocks VALUES(?,?,?,?,?,?,?,?,?,?)");
  for (const IndexRow& row : changes.insert) {
    insert.bind(row.block.id).bind(row.block.parent).bind(static_cast<std::uint64_t>(row.block.begin));
    insert.bind(std::as_bytes(std::span(row.block.tokens))).bind(row.segment).bind(row.offset);
    insert.bind(row.record_bytes).bind(row.payload_bytes).bind(row.use.order).bind(std::uint64_t{row.use.uses});
    if (auto done = insert.run(); !done) return done;
  }
  Statement move(db_, "UPDATE blocks SET segment=?, offset=? WHERE id=?");
  for (const IndexMove& m : changes.move) {
    if (auto done = move.bind(m.segment).bind(m.offset).bind(m.id).run(); !done) return done;
  }
  Statement use(db_, "UPDATE blocks SET last_use=?, uses=? WHERE id=?");
  for (const BlockUse& u : changes.use) {
    if (auto done = use.bind(u.order).bind(std::uint64_t{u.uses}).bind(u.id).run(); !done) return done;
  }
  Statement put(db_, "INSERT OR REPLACE INTO records VALUES(?,?,?)");
  Statement drop(db_, "DELETE FROM records WHERE kind=? AND key=?");
  for (const RecordChange& r : changes.records) {
    auto done = r.value ? put.bind(r.kind).bind(r.key).bind(*r.value).run() : drop.bind(r.kind).bind(r.key).run();
    if (!done) return done;
  }
  return {};
}

}  // namespace coppice::tier
