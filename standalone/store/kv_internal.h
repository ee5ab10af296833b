/* The parts of an open store, and which thread each belongs to. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <sys/queue.h>

#include "standalone/store/kv.h"
#include "standalone/store/kv_sql.h"

/* The connections that readers and watches share; further ones wait for a moment. */
#define KV_READERS 4

/* Each write counts as so many bytes of history besides the text that it replaces. */
#define KV_ROW_WEIGHT 128

/* --- history, and the log: the writing thread's --- */

/* A point of the history. weight: of all that was written up to it. */
struct kv_point {
    uint64_t revision;
    uint64_t weight;
};

struct kv_history {
    uint64_t max_revisions, max_bytes;
    struct kv_point head;
    struct kv_point compacted;
    bool failed; /* the last one, which was said */
};

/* --- connections that read: a leaf lock, held for no statement --- */

struct kv_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kv_connection connections[KV_READERS];
    struct kv_connection *unused;
    size_t in_use;
    bool paused;
};

void kv_pool_init(struct kv_pool *pool);
void kv_pool_release(struct kv_pool *pool);
/* true: no read is in progress when it returns, and none begins until it is called with false. */
void kv_pool_pause(struct kv_pool *pool, bool paused);

/* One revision of the store, for reading. */
struct kv_snapshot {
    struct kv_connection *connection;
    uint64_t revision;
    uint64_t compacted;
};

int kv_state_read(struct kv_connection *connection, struct kv_point *ret_compacted,
                  uint64_t *ret_head, struct error *err) MUST_CHECK;
int kv_too_old(uint64_t revision, uint64_t compacted, struct error *err); /* ERROR_GONE */
int kv_snapshot_begin(struct kv *kv, struct kv_snapshot *ret, struct error *err) MUST_CHECK;
void kv_snapshot_end(struct kv *kv, struct kv_snapshot *snapshot);

/* Of a connection that is not of the pool; it has the snapshot until its transaction ends. */
int kv_snapshot_take(struct kv_snapshot *snapshot, struct error *err) MUST_CHECK;

/* Of this revision, with the text that it wrote (NULL: it deleted the key); in the arena. */
int kv_value_read(struct kv_connection *connection, struct arena *arena, uint64_t revision,
                  struct kv_value *ret, struct error *err) MUST_CHECK;
/* The newest revision of the key up to this one; 0: it is not there. */
int kv_find_newest(struct kv_connection *connection, const char *key, uint64_t revision,
                   uint64_t *ret, struct error *err) MUST_CHECK;

/* --- who waits for events: a leaf lock --- */

LIST_HEAD(kv_watch_list, kv_watch);

struct kv_watches {
    pthread_mutex_t lock;
    pthread_cond_t told;
    uint64_t head; /* the newest revision */
    struct kv_watch_list all;
};

void kv_watches_init(struct kv_watches *watches, uint64_t head);
void kv_watches_release(struct kv_watches *watches); /* there is none */
/* The next revision is on the disk: it has written this key. */
void kv_watches_publish(struct kv_watches *watches, uint64_t revision, const char *key);
/* Notifies the watches for which what was published since the last time has something. */
void kv_watches_notify(struct kv_watches *watches);

/* --- what waits to be written --- */

STAILQ_HEAD(kv_writes, kv_write);

struct kv_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct kv_writes writes;
    bool stopping;
};

struct kv_log {
    int frames;     /* pages in it */
    int try_frames; /* it is moved into the file when it has so many */
    bool failed;    /* the last time, which was said */
};

/* Of sqlite3_wal_hook, with the struct kv_log: how long the log is after a commit. */
int kv_log_note(void *pointer, sqlite3 *db, const char *name, int frames);
/* --- FILE-lock: the process that has the store, that there is one, its acknowledged revision;
 * the writing thread's --- */

struct kv;

struct kv_mark {
    int fd;            /* negative: not open */
    bool is_made;      /* the store was made */
    bool is_known;     /* its revision is valid; not of one that is new, empty or damaged */
    uint64_t revision; /* that was acknowledged; 0: it is not known */
    bool failed;       /* the last write, which was said */
};

/* Takes the lock and reads. */
int kv_mark_open(struct kv *kv, struct error *err) MUST_CHECK;
/* ERROR_INVALID: the store has lost what was acknowledged. */
int kv_mark_check(const struct kv *kv, struct error *err) MUST_CHECK;
/* The store is on the disk as it is. */
void kv_mark_begin(struct kv *kv);
/* So is this revision, which no caller has seen yet. */
void kv_mark_write(struct kv *kv, uint64_t revision);
void kv_mark_close(struct kv_mark *mark);

/* --- whether it can be read: a leaf lock --- */

struct kv_health {
    pthread_mutex_t lock;
    atomic_bool is_broken; /* set under the lock */
    atomic_uint
        generation; /* of connections: those from before it was well again may remember what was wrong */
    struct error why;        /* of the read that was the first to fail */
    pthread_mutex_t looking; /* of the thread that looks whether it can be read again */
    uint32_t look_ms;
    _Atomic int64_t next_look_ms;
};

void kv_health_init(struct kv_health *health, uint32_t look_ms); /* 0: the default */
void kv_health_release(struct kv_health *health);
/* A read has ended so: its news of the store is kept for kv_health. why may be NULL. Returns r. */
int kv_health_note(struct kv *kv, int r, const struct error *why);

/* --- a backup that becomes a store --- */

/* Of a store whose state was read. 1: it was a backup, and is none any more, the last revision that it gave is unknown
 * (kv_mark.is_known), or it has lost acknowledged writes and goes on: the revision has been raised above all that the
 * lost store can have given, all before is compacted, and the state is to be read again. */
int kv_restore(struct kv *kv, struct error *err) MUST_CHECK;

/* --- all of it --- */

struct kv {
    char *path;
    char *vfs;
    const struct clock *clock;
    struct kv_mark mark;
    bool goes_on;
    struct kv_loss loss;
    struct kv_health health;
    struct kv_connection writer; /* of the writing thread; of kv_open and kv_close around it */
    struct kv_history history;
    struct kv_log log;
    _Atomic uint64_t compacted; /* history.compacted, for all threads */
    struct kv_queue queue;
    struct kv_pool pool;
    struct kv_watches watches;
    pthread_t thread;
    bool started;
};

void *kv_writer_run(void *ctx); /* the struct kv */
/* The writing thread: a connection of the generation that is now. */
int kv_renew_writer(struct kv *kv, struct error *err) MUST_CHECK;
int kv_check(struct kv_connection *connection, struct error *err) MUST_CHECK;
/* Whether the file is a store of this version; 1: it is empty, and could become one. */
int kv_check_identity(struct kv_connection *connection, struct error *err) MUST_CHECK;
/* Refuses a file that SQLite cannot use, for kv_check and others: ERROR_INVALID with what to do. */
int kv_refuse_damaged(const char *path, int r, struct error *err);
