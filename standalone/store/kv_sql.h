/* A connection to the file of a store, its statements and its errors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "common/base/error.h"

/* For the rare moments in which SQLite lets a reader wait: recovery, a log that begins again. */
#define KV_BUSY_MS 10000

enum kv_statement {
    KV_BEGIN_READ,
    KV_BEGIN_WRITE,
    KV_COMMIT,
    KV_ROLLBACK,
    KV_IDENTITY,
    KV_JOURNAL,
    KV_CHECK_PAGES,
    KV_CHECK_ROWS,
    KV_COPY,
    KV_STATE,
    KV_NEWEST,
    KV_ROW,
    KV_KEYS,
    KV_COUNT,
    KV_LATER,
    KV_INSERT,
    KV_COMPACT,
    KV_STATEMENTS,
};

/* Used by one thread at a time. Zero: not open. */
struct kv_connection {
    sqlite3 *db;
    const char *path; /* the owner's */
    sqlite3_stmt *statements[KV_STATEMENTS];
    struct kv_connection *next; /* the ones that are not in use */
    unsigned generation;        /* kv_health.generation when it was opened */
};

/* Opens an existing file, to write or to read it alone. vfs NULL: the default one. */
int kv_connect(const char *path, const char *vfs, bool read_only, struct kv_connection *ret,
               struct error *err) MUST_CHECK;
void kv_disconnect(struct kv_connection *connection); /* does nothing if it is not open */

/* The error of the last call: ERROR_UNAVAILABLE (no space, the disk failed, cannot be opened),
 * ERROR_INTERNAL (damaged). Names the file and `doing`. */
int kv_sql_error(const struct kv_connection *connection, const char *doing, struct error *err);

/* Statements from text, for what is done once: PRAGMAs, the schema. */
int kv_execute(const struct kv_connection *connection, const char *sql,
               struct error *err) MUST_CHECK;
/* The first column of the first row of one; 0 if there is none. */
int kv_ask(const struct kv_connection *connection, const char *sql, int64_t *ret,
           struct error *err) MUST_CHECK;

/* A statement to bind and step; given back with sqlite3_reset. */
int kv_prepare(struct kv_connection *connection, enum kv_statement id, sqlite3_stmt **ret,
               struct error *err) MUST_CHECK;
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_reset)
int kv_step(const struct kv_connection *connection, sqlite3_stmt *statement, const char *doing,
            struct error *err) MUST_CHECK; /* 1: a row; 0: no more */
/* One without parameters and rows. ERROR_TIMEOUT: the disk failed in a commit. */
int kv_run(struct kv_connection *connection, enum kv_statement id, struct error *err) MUST_CHECK;
/* Ends the transaction, if there is one. false: it cannot be ended. */
bool kv_roll_back(struct kv_connection *connection);

int kv_bind_text(sqlite3_stmt *statement, int index, const char *text, size_t len);
int kv_bind_number(sqlite3_stmt *statement, int index, uint64_t number);
uint64_t kv_column_number(sqlite3_stmt *statement, int column);

/* A row of the history; strings live as long as the statement stands at it. */
struct kv_row {
    uint64_t revision;
    uint64_t created;
    uint64_t previous; /* the revision that it replaced; 0: it created the key */
    bool deleted;
    const char *key;
    size_t key_len;
    const char *text;
    size_t len;
    int64_t written_ms; /* not of the checksum */
};

int64_t kv_checksum(const struct kv_row *row);
/* Reads the row of a statement with the columns of KV_ROW; ERROR_INTERNAL: its checksum is not right. */
int kv_row_read(const struct kv_connection *connection, sqlite3_stmt *statement, struct kv_row *ret,
                struct error *err) MUST_CHECK;
/* ERROR_INTERNAL: it is not there, although something names it. */
int kv_row_find(struct kv_connection *connection, uint64_t revision, sqlite3_stmt **ret_statement,
                struct kv_row *ret, struct error *err) MUST_CHECK;
