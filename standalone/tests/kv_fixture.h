/* A store in a folder of its own, with a clock that the test moves, and short words for what is done to
 * it. Whatever is not expected fails the test. */
#pragma once

#include <check.h>
#include <poll.h>

#include "common/tests/fake_clock.h"
#include "standalone/store/kv.h"

/* Waits for the condition, two minutes at most. */
#define AWAIT(condition)                                                                           \
    for (int64_t end_ms_ = clock_monotonic_ms(&CLOCK_SYSTEM) + 120000; !(condition);) {            \
        ck_assert_msg(clock_monotonic_ms(&CLOCK_SYSTEM) < end_ms_, "it never was: %s",             \
                      #condition);                                                                 \
        (void)poll(NULL, 0, 1);                                                                    \
    }                                                                                              \
    _Static_assert(__LINE__, "for the semicolon")

struct kv_fixture {
    struct arena *arena;
    struct fake_clock clock;
    struct kv_options options; /* may be changed before an open */
    struct kv *kv;
    struct error err; /* of the last call that failed */
};

void kv_fixture_begin(struct kv_fixture *fixture); /* nothing is open yet */
void kv_fixture_open(struct kv_fixture *fixture);
void kv_fixture_close(struct kv_fixture *fixture); /* the store */
void kv_fixture_end(struct kv_fixture *fixture);

/* The store of the functions below. */
extern struct kv_fixture kv_store;
void kv_store_begin(void);
void kv_store_end(void);

/* The revision of the write. */
uint64_t kv_fixture_put(const char *key, const char *text, uint64_t expected);
uint64_t kv_fixture_delete(const char *key, uint64_t expected);
/* Writes, which empties the memory of connections that read. */
void kv_fixture_forget_pages(void);
/* Returns the value of the key at a revision (0: now); NULL: it is not there. */
const char *kv_fixture_get(const char *key, uint64_t revision);
/* How many keys there are now. */
size_t kv_fixture_count(struct kv *kv, const char *prefix);
/* "key=text key=text …" */
const char *kv_fixture_list(const char *prefix, uint64_t revision);
/* The file of the store with this behind its name. */
const char *kv_fixture_file(const char *suffix);
/* Beside the store, which may be open. */
void kv_fixture_execute(const char *sql);
struct kv_bytes {
    char *bytes;
    size_t len;
};
struct kv_bytes kv_fixture_read_file(const char *path);
void kv_fixture_write_file(const char *path, const char *bytes, size_t len);
/* The last call has failed with these words. */
void kv_fixture_said(const char *part);
/* How many there are whose names begin so. */
size_t kv_fixture_count_files(const char *suffix);

/* "+key=text" created, "~key=text(old)" changed, "-key(old)" deleted; "." when there is none, "GONE". */
const char *kv_fixture_next(struct kv_watch *watch);
struct kv_watch *kv_fixture_watch(const char *prefix, uint64_t after);

/* Versions of all keys in the file, whether the store is open or not. */
int64_t kv_fixture_count_rows(void);
/* Until the store has compacted up to that revision. */
void kv_fixture_await_compacted(uint64_t revision);
