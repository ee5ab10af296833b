#include "standalone/store/kv_sql.h"

#include <errno.h>
#include <inttypes.h>

#include "common/base/arena.h"

/*
 * Newest revisions come from the index alone, in the order of keys; a text is read only for what is
 * returned. INDEXED BY makes a plan that scans the table an error.
 */
#define KEYS                                                                                       \
    "SELECT MAX(revision), deleted FROM history INDEXED BY newest"                                 \
    " WHERE key >= ?1 AND key < ?2 AND +key <> ?3 AND revision <= ?4"                              \
    " GROUP BY key HAVING NOT deleted"
#define ROW                                                                                        \
    "SELECT revision, key, created, previous, deleted, checksum, text, written_ms"                 \
    " FROM history"
static const char *const SQL[KV_STATEMENTS] = {
    [KV_BEGIN_READ] = "BEGIN",
    [KV_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [KV_COMMIT] = "COMMIT",
    [KV_ROLLBACK] = "ROLLBACK",
    [KV_IDENTITY] = "SELECT application_id, user_version, (SELECT COUNT(*) FROM sqlite_schema)"
                    " FROM pragma_application_id, pragma_user_version",
    [KV_JOURNAL] = "PRAGMA journal_mode = WAL",
    [KV_CHECK_PAGES] = "PRAGMA integrity_check(1)",
    [KV_CHECK_ROWS] = ROW " ORDER BY revision",
    [KV_COPY] = "VACUUM INTO ?1",
    [KV_STATE] =
        "SELECT compacted, compacted_weight, (SELECT MAX(revision) FROM history) FROM state",
    [KV_NEWEST] = "SELECT revision, deleted FROM history INDEXED BY newest"
                  " WHERE key = ?1 AND revision <= ?2 ORDER BY revision DESC LIMIT 1",
    [KV_ROW] = ROW " WHERE revision = ?1",
    [KV_KEYS] = KEYS " ORDER BY key",
    [KV_COUNT] = "SELECT COUNT(*) FROM (" KEYS ")",
    [KV_LATER] = "SELECT revision, previous, key FROM history"
                 " WHERE revision > ?1 ORDER BY revision LIMIT ?2",
    [KV_INSERT] =
        "INSERT INTO history (revision, key, created, previous, deleted, written_ms, weight,"
        " checksum, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [KV_COMPACT] = "UPDATE state SET compacted = due.revision, compacted_weight = due.weight FROM"
                   " (SELECT MAX(revision) AS revision, weight FROM"
                   " (SELECT revision, weight FROM history"
                   " WHERE revision > (SELECT compacted FROM state) AND revision < ?1"
                   " ORDER BY revision LIMIT ?2)"
                   " WHERE revision <= ?3 OR weight <= ?4) AS due"
                   " WHERE due.revision IS NOT NULL RETURNING compacted, compacted_weight",
};

/* Larger caches save no reads: a reader forgets its pages with each commit, and the writer appends. */
#define READER_CACHE_KIB 256
#define WRITER_CACHE_KIB 512

int kv_connect(const char *path, const char *vfs, bool read_only, struct kv_connection *ret,
               struct error *err)
{
    int flags = (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_EXRESCODE;
    struct kv_connection connection = { .path = path };
    char pragmas[256];

    int r = sqlite3_open_v2(path, &connection.db, flags, vfs) == SQLITE_OK
                ? 0
                : kv_sql_error(&connection, "open", err);
    (void)sqlite3_busy_timeout(connection.db, KV_BUSY_MS);
    /* One that is found damaged is left as it is: kv_close moves the log itself. */
    (void)sqlite3_db_config(connection.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(connection.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)snprintf(pragmas, sizeof(pragmas),
                   "PRAGMA cache_size = -%d; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
                   "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                   "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL",
                   read_only ? READER_CACHE_KIB : WRITER_CACHE_KIB);
    if (r == 0)
        r = kv_execute(&connection, pragmas, err);
    if (r == 0)
        *ret = connection;
    else
        kv_disconnect(&connection);
    return r;
}

void kv_disconnect(struct kv_connection *connection)
{
    for (size_t i = 0; i < KV_STATEMENTS; i++)
        (void)sqlite3_finalize(connection->statements[i]);
    (void)sqlite3_close_v2(connection->db);
    *connection = (struct kv_connection){ 0 };
}

int kv_sql_error(const struct kv_connection *connection, const char *doing, struct error *err)
{
    int code = connection->db ? sqlite3_extended_errcode(connection->db) : SQLITE_NOMEM;
    const char *message = connection->db ? sqlite3_errmsg(connection->db) : "out of memory";
    int system = connection->db ? sqlite3_system_errno(connection->db) : 0;

    switch (code & 0xff) {
    case SQLITE_FULL:
        return error_set(err, ERROR_UNAVAILABLE, "%s '%s': no space left on the disk", doing,
                         connection->path);
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
        return error_set(err, ERROR_UNAVAILABLE, "%s '%s': %s (%d, errno %d)", doing,
                         connection->path, message, code, system);
    default:
        return error_set(err, ERROR_INTERNAL, "%s '%s': %s (%d)", doing, connection->path, message,
                         code);
    }
}

int kv_execute(const struct kv_connection *connection, const char *sql, struct error *err)
{
    if (sqlite3_exec(connection->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return kv_sql_error(connection, "set up", err);
    return 0;
}

int kv_ask(const struct kv_connection *connection, const char *sql, int64_t *ret, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);

    int r = code == SQLITE_OK ? kv_step(connection, statement, "read", err)
                              : kv_sql_error(connection, "read", err);
    if (r >= 0)
        *ret = r > 0 ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_finalize(statement);
    return r < 0 ? r : 0;
}

int kv_prepare(struct kv_connection *connection, enum kv_statement id, sqlite3_stmt **ret,
               struct error *err)
{
    sqlite3_stmt **kept = &connection->statements[id];

    if (!*kept && sqlite3_prepare_v3(connection->db, SQL[id], -1, SQLITE_PREPARE_PERSISTENT, kept,
                                     NULL) != SQLITE_OK)
        return kv_sql_error(connection, "prepare", err);
    *ret = *kept;
    return 0;
}

int kv_step(const struct kv_connection *connection, sqlite3_stmt *statement, const char *doing,
            struct error *err)
{
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    return code == SQLITE_DONE ? 0 : kv_sql_error(connection, doing, err);
}

int kv_run(struct kv_connection *connection, enum kv_statement id, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, id, &statement, err);
    if (r < 0)
        return r;
    r = kv_step(connection, statement, id == KV_COMMIT ? "commit to" : "begin with", err);
    /* Of a commit that the disk has failed all may be in the log already. */
    if (r < 0 && id == KV_COMMIT && (sqlite3_errcode(connection->db) & 0xff) == SQLITE_IOERR) {
        err->code = ERROR_TIMEOUT;
        return -ERROR_TIMEOUT;
    }
    return r;
}

bool kv_roll_back(struct kv_connection *connection)
{
    struct error ignored;

    return !connection->db || sqlite3_get_autocommit(connection->db) ||
           kv_run(connection, KV_ROLLBACK, &ignored) == 0;
}

int kv_bind_text(sqlite3_stmt *statement, int index, const char *text, size_t len)
{
    return sqlite3_bind_text64(statement, index, text, len, SQLITE_STATIC, SQLITE_UTF8);
}

/* Revisions are far below 2^63, which is all that a column holds. */
int kv_bind_number(sqlite3_stmt *statement, int index, uint64_t number)
{
    return sqlite3_bind_int64(statement, index, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

uint64_t kv_column_number(sqlite3_stmt *statement, int column)
{
    return (uint64_t)sqlite3_column_int64(statement, column);
}

/* 64-bit FNV-1a (Fowler, Noll, Vo): against bits that fell over, not against people. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int64_t kv_checksum(const struct kv_row *row)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    uint64_t numbers[] = { row->revision, row->created, row->previous, row->deleted, row->key_len };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        hash = (hash ^ numbers[i]) * UINT64_C(0x100000001b3);
    hash = hash_bytes(hash, row->key, row->key_len);
    hash = hash_bytes(hash, row->text, row->len);
    return (int64_t)hash;
}

int kv_row_read(const struct kv_connection *connection, sqlite3_stmt *statement, struct kv_row *ret,
                struct error *err)
{
    struct kv_row row = {
        .revision = kv_column_number(statement, 0),
        .created = kv_column_number(statement, 2),
        .previous = kv_column_number(statement, 3),
        .deleted = sqlite3_column_int(statement, 4) != 0,
        .key = (const char *)sqlite3_column_text(statement, 1),
        .key_len = (size_t)sqlite3_column_bytes(statement, 1),
        .text = (const char *)sqlite3_column_text(statement, 6),
        .len = (size_t)sqlite3_column_bytes(statement, 6),
        .written_ms = sqlite3_column_int64(statement, 7),
    };
    int64_t checksum = sqlite3_column_int64(statement, 5);

    if (!row.key || !row.text || checksum != kv_checksum(&row))
        return error_set(err, ERROR_INTERNAL,
                         "'%s' is damaged: the checksum of revision %" PRIu64 " is not right",
                         connection->path, row.revision);
    *ret = row;
    return 0;
}

int kv_row_find(struct kv_connection *connection, uint64_t revision, sqlite3_stmt **ret_statement,
                struct kv_row *ret, struct error *err)
{
    CLEANUP(sqlite3_resetp) sqlite3_stmt *statement = NULL;

    int r = kv_prepare(connection, KV_ROW, &statement, err);
    if (r < 0)
        return r;
    (void)kv_bind_number(statement, 1, revision);
    r = kv_step(connection, statement, "read", err);
    if (r < 0)
        return r;
    if (r == 0)
        return error_set(err, ERROR_INTERNAL, "'%s' is damaged: revision %" PRIu64 " is missing",
                         connection->path, revision);
    r = kv_row_read(connection, statement, ret, err);
    if (r < 0)
        return r;
    *ret_statement = TAKE(statement);
    return 0;
}
