/* The embedded store: texts under keys in one SQLite file, with revisions, history and watches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/error.h"

/*
 * The contract is that of etcd's KV and Watch API (etcd.io, "API guarantees") for one key a write.
 *
 * Invariants
 *  1. Every write has a revision of its own, larger than those before it, also those of earlier
 *     processes. An empty store is at revision 1.
 *  2. A write that returned 0 is on the disk (WAL with synchronous=FULL: the log is synced before
 *     the answer) and stays after kill -9 and power loss; writers that wait together share a sync.
 *     A reader or a watch sees nothing that is not on the disk.
 *  3. A write that returned ERROR_UNAVAILABLE was not made at all.
 *  4. A read shows the store at one revision. A read after a write that returned shows it.
 *  5. A watch gives every event of its prefix after its revision once and in order, or says GONE.
 *  6. Every row has a checksum over its content, looked at by each read.
 *  7. One connection writes, compacts and moves the log into the file, all on one thread: SQLite
 *     before 3.51.3 may damage a file when two connections do so at once (sqlite.org, "WAL-reset
 *     bug").
 *
 * In memory is nothing for each object: pages in the caches of the connections alone. Watches read
 * their events from the file.
 *
 * All functions: any thread, and they may block on the disk. None may be under way, and no watch
 * open, when kv_close is called.
 */
struct kv;
struct kv_watch;

/* Keys are printable: no byte below 0x20. */
#define KV_MAX_KEY 1024
/* Of one text: etcd's --max-request-bytes. */
#define KV_MAX_TEXT (3u << 19)
/* As the expected revision of a write: whatever is there, or nothing. */
#define KV_ANY UINT64_MAX

struct kv_options {
    const char *
        path; /* FILE; beside it FILE-wal, FILE-shm, FILE-lock, which stays. Its folder must exist */
    /* The limits of history behind the newest revision; older history is compacted between writes. 0: the default. */
    uint64_t history_revisions; /* 100,000 */
    uint64_t history_bytes;     /* 32 MiB of texts that were replaced */
    uint32_t look_ms;           /* 5 s: between two looks after a read that failed, see kv_health */
    const struct clock *clock;  /* NULL: CLOCK_SYSTEM */
    const char *vfs;            /* of SQLite; NULL: the default one. For tests */
    bool goes_on; /* a store that has lost what was acknowledged is opened, and goes on above it */
};

/*
 * Opens the file, or makes it, and looks through all of it. ERROR_INVALID: it is damaged, is empty although FILE-lock
 * says that it was made, has lost a revision that FILE-lock says was acknowledged (unless goes_on), is none of this
 * program's or one of a newer version; it was left as it is, and the message says what to do. Without a FILE-lock that
 * can be read, and where it goes on, the revision of a store goes up as that of a backup, see kv_backup.
 * ERROR_UNAVAILABLE: another process has it open, or it cannot be read or written.
 */
#define KV_IN_USE "is in use by another process" /* the end of the message */
int kv_open(const struct kv_options *options, struct kv **ret, struct error *err) MUST_CHECK;
void kv_close(struct kv *kv); /* NULL is fine */
DEFINE_CLEANUP(struct kv *, kv_close)

struct kv_value { /* in the caller's arena */
    const char *key;
    const char *text; /* NUL behind it; NULL: deleted */
    size_t len;
    uint64_t revision;  /* of the write that made it so */
    int64_t written_ms; /* by the wall clock */
};

/* revision 0 is the newest one. ERROR_NOT_FOUND; ERROR_GONE: compacted; ERROR_TIMEOUT: the revision is
 * not there yet; ERROR_INTERNAL: the row is damaged; ERROR_UNAVAILABLE: the disk cannot be read now. */
int kv_get(struct kv *kv, struct arena *arena, const char *key, uint64_t revision,
           struct kv_value *ret, struct error *err) MUST_CHECK;

struct kv_range {
    const char *prefix;
    const char *after; /* keys behind this one; NULL: from the first */
    size_t limit;      /* 0: all */
    size_t max_bytes;  /* of texts: the page ends with the first that reaches it; 0: no limit */
    uint64_t revision; /* 0: the newest; pages after the first give the first one's */
    bool uncounted;    /* remaining is 1 for any number: to count costs as much as a page of 500 for
                        * every 20,000 keys. So it is where max_bytes ends the page before limit */
};

struct kv_page {
    struct kv_value *items; /* in the order of keys, as bytes compare */
    size_t len;
    uint64_t revision; /* the revision of the page */
    size_t remaining;  /* the number of objects after it */
};

/* Errors as kv_get's; nothing found is an empty page. */
int kv_list(struct kv *kv, struct arena *arena, const struct kv_range *range, struct kv_page *ret,
            struct error *err) MUST_CHECK;

/*
 * expected 0: the key must not be there (ERROR_EXISTS); else it must have that revision (ERROR_CONFLICT,
 * ERROR_NOT_FOUND); or KV_ANY. Also ERROR_INVALID: not a key; ERROR_TOO_LARGE; ERROR_UNAVAILABLE: no space, or the
 * present value cannot be read: nothing was written; ERROR_TIMEOUT: the disk failed while the write was made durable:
 * it is not there, and may be back after a crash. After each of them the next write tries again: no step by hand is
 * needed when the disk is well again.
 */
int kv_put(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
           uint64_t *ret_revision, struct error *err) MUST_CHECK;
/* A key that must be at this revision in the moment of a write of another one. */
struct kv_guard {
    const char *key;
    uint64_t revision;
};
/* As kv_put, in one transaction with a look at the guard: ERROR_GONE if it is not so. */
int kv_put_guarded(struct kv *kv, const char *key, const char *text, size_t len, uint64_t expected,
                   const struct kv_guard *guard, uint64_t *ret_revision,
                   struct error *err) MUST_CHECK;
/* As kv_put; ERROR_NOT_FOUND also with KV_ANY. */
int kv_delete(struct kv *kv, const char *key, uint64_t expected, uint64_t *ret_revision,
              struct error *err) MUST_CHECK;

enum kv_event_type { KV_PUT, KV_DELETE };

struct kv_event {
    enum kv_event_type type;
    struct kv_value value;    /* of a deletion: key and revision, no text */
    struct kv_value previous; /* the value before it; revision 0: none, the key was created */
};

/* There may be more to take. Once after each kv_watch_next that gave 0; on the store's writing thread:
 * must not block and not call back into the store. */
typedef void kv_notify_fn(void *ctx);

/* Events after after_revision of keys with the prefix; one thread at a time uses a watch. ERROR_GONE: that is compacted.
 * A revision that is not there yet is waited for. */
int kv_watch(struct kv *kv, const char *prefix, uint64_t after_revision, struct kv_watch **ret,
             struct error *err) MUST_CHECK;
/* Once for a watch. Calls notify at once, for events before it. */
void kv_watch_set_notify(struct kv_watch *watch, kv_notify_fn *notify, void *ctx);
/* 1: an event; 0: none now; -ERROR_GONE: it fell behind the history, list again. Other errors may be tried again. */
int kv_watch_next(struct kv_watch *watch, struct arena *arena, struct kv_event *ret,
                  struct error *err) MUST_CHECK;
/* Every event up to this revision was taken: for bookmarks. */
uint64_t kv_watch_progress(struct kv_watch *watch);
/* notify is not running, and is not called again, when it returns. NULL is fine. */
void kv_watch_close(struct kv_watch *watch);

uint64_t kv_revision(struct kv *kv);  /* the newest */
uint64_t kv_compacted(struct kv *kv); /* reads and watches from here on find their history */

/* The loss that kv_open has found, and above which it went on. */
struct kv_loss {
    uint64_t found; /* the newest revision that was there; 0: nothing was lost */
    uint64_t noted; /* the newest one that was acknowledged */
};
struct kv_loss kv_loss(const struct kv *kv);

/* 0; ERROR_INTERNAL: a value that was read is damaged, or ERROR_UNAVAILABLE: the disk did not
 * give it, from the first read that failed until all of the store could be read again, which this tries, at most
 * every look_ms. Both moments are in the log. A full disk does not count. */
int kv_health(struct kv *kv, struct error *err) MUST_CHECK;

/*
 * A copy of one revision of a store into a new file. Another process may have it open, read and write, and is
 * not disturbed.
 *
 *  - It is made under a name of its own (".new-" and six letters behind it), looked through as kv_open does,
 *    synced and renamed, so a file of that name is whole, and an existing one is never replaced: of
 *    several at once one gets the name.
 *  - It is opened with kv_open like any other, but the first time its revision goes up: above all that the
 *    store which was lost can have given since, also if it was begun from this backup before (by a large
 *    step, and to the time if that is more). Older revisions are compacted: reads and watches from
 *    there say ERROR_GONE.
 *  - Reading one revision in one transaction, it never has to begin again because of a write, as
 *    sqlite3_backup_step would; meanwhile the log grows.
 *
 * ERROR_EXISTS: the file is there already; ERROR_NOT_FOUND: there is no such store.
 */
int kv_backup(const char *store, const char *path, struct error *err) MUST_CHECK;

/*
 * One revision of a store that another process may have open, which is not disturbed: writers go on, and
 * their log grows as long as the reader is open. One thread. ERROR_NOT_FOUND: there is no such store;
 * else as kv_open, but what is damaged is found when it is read.
 */
struct kv_reader;
int kv_reader_open(const char *path, struct kv_reader **ret, struct error *err) MUST_CHECK;
void kv_reader_close(struct kv_reader *reader); /* NULL is fine */
DEFINE_CLEANUP(struct kv_reader *, kv_reader_close)
/* As kv_list; the revision asked for must be 0. */
int kv_reader_list(struct kv_reader *reader, struct arena *arena, const struct kv_range *range,
                   struct kv_page *ret, struct error *err) MUST_CHECK;
