#include <inttypes.h>
#include <string.h>

#include "standalone/store/kv_internal.h"

/* SQLite's own look at pages, trees and the index. */
static int check_pages(const struct kv_connection *connection, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(connection->db, "PRAGMA integrity_check(1)", -1, &statement, NULL) !=
            SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        r = kv_sql_error(connection, "check", err);
    } else {
        const char *verdict = (const char *)sqlite3_column_text(statement, 0);
        if (!verdict || strcmp(verdict, "ok") != 0)
            r = error_set(err, ERROR_INTERNAL, "%s", verdict ? verdict : "no verdict");
    }
    (void)sqlite3_finalize(statement);
    return r;
}

/* That each row says what was written. */
static int check_rows(struct kv_connection *connection, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    struct kv_row row;
    int r = 0;

    if (sqlite3_prepare_v2(connection->db,
                           "SELECT revision, key, created, previous, deleted, checksum, text"
                           " FROM history ORDER BY revision",
                           -1, &statement, NULL) != SQLITE_OK)
        r = kv_sql_error(connection, "check", err);
    while (r == 0) {
        int more = kv_step(connection, statement, "check", err);
        if (more <= 0) {
            r = more;
            break;
        }
        r = kv_row_read(connection, statement, &row, err);
    }
    (void)sqlite3_finalize(statement);
    return r;
}

static int read_all(struct kv_connection *connection, struct error *err)
{
    int64_t ignored;
    int r = check_rows(connection, err);

    if (r == 0)
        r = kv_ask(connection, "SELECT COUNT(*) FROM history INDEXED BY newest WHERE key <> ''",
                   &ignored, err);
    return r < 0 ? r : kv_ask(connection, "SELECT COUNT(*) FROM state", &ignored, err);
}

/* To SQLite's look a page that the disk does not give is damaged as any other, but a read says why: nobody is to
 * restore a backup because a disk was away. */
int kv_check(struct kv_connection *connection, struct error *err)
{
    int r = check_pages(connection, err);

    if (r == -ERROR_INTERNAL) {
        struct error why;
        int cause = read_all(connection, &why);

        if (cause < 0 && cause != -ERROR_INTERNAL) {
            *err = why;
            return cause;
        }
    }
    return r < 0 ? r : check_rows(connection, err);
}
