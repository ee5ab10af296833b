#include "standalone/tests/kv_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#include "common/base/str.h"
#include "common/tests/temp_dir.h"

struct kv_fixture kv_store;

void kv_store_begin(void)
{
    kv_fixture_begin(&kv_store);
}

void kv_store_end(void)
{
    kv_fixture_end(&kv_store);
}

void kv_fixture_begin(struct kv_fixture *fixture)
{
    *fixture = (struct kv_fixture){ .arena = arena_create() };
    fake_clock_init(&fixture->clock);
    fixture->options.path = arena_printf(fixture->arena, "%s/store.db", temp_dir(fixture->arena));
    fixture->options.clock = &fixture->clock.clock;
}

void kv_fixture_open(struct kv_fixture *fixture)
{
    int r = kv_open(&fixture->options, &fixture->kv, &fixture->err);

    ck_assert_msg(r == 0, "%s", fixture->err.message);
}

void kv_fixture_close(struct kv_fixture *fixture)
{
    kv_close(fixture->kv);
    fixture->kv = NULL;
}

void kv_fixture_end(struct kv_fixture *fixture)
{
    kv_fixture_close(fixture);
    arena_destroy(fixture->arena);
}

uint64_t kv_fixture_put(const char *key, const char *text, uint64_t expected)
{
    uint64_t revision = 0;
    int r = kv_put(kv_store.kv, key, text, strlen(text), expected, &revision, &kv_store.err);

    ck_assert_msg(r == 0, "put '%s': %s", key, kv_store.err.message);
    return revision;
}

void kv_fixture_forget_pages(void)
{
    (void)kv_fixture_put("/tick", "", KV_ANY);
}

uint64_t kv_fixture_delete(const char *key, uint64_t expected)
{
    uint64_t revision = 0;
    int r = kv_delete(kv_store.kv, key, expected, &revision, &kv_store.err);

    ck_assert_msg(r == 0, "delete '%s': %s", key, kv_store.err.message);
    return revision;
}

const char *kv_fixture_get(const char *key, uint64_t revision)
{
    struct kv_value value;
    int r = kv_get(kv_store.kv, kv_store.arena, key, revision, &value, &kv_store.err);

    if (r == -ERROR_NOT_FOUND)
        return NULL;
    ck_assert_msg(r == 0, "get '%s': %s", key, kv_store.err.message);
    ck_assert_str_eq(value.key, key);
    ck_assert_uint_eq(strlen(value.text), value.len);
    return value.text;
}

const char *kv_fixture_list(const char *prefix, uint64_t revision)
{
    struct kv_range range = { .prefix = prefix, .revision = revision };
    const char *text = "";
    struct kv_page page;
    int r = kv_list(kv_store.kv, kv_store.arena, &range, &page, &kv_store.err);

    ck_assert_msg(r == 0, "list '%s': %s", prefix, kv_store.err.message);
    ck_assert_uint_eq(page.remaining, 0);
    for (size_t i = 0; i < page.len; i++)
        text = arena_printf(kv_store.arena, "%s%s%s=%s", text, i ? " " : "", page.items[i].key,
                            page.items[i].text);
    return text;
}

const char *kv_fixture_file(const char *suffix)
{
    return arena_printf(kv_store.arena, "%s%s", kv_store.options.path, suffix);
}

void kv_fixture_execute(const char *sql)
{
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open_v2(kv_store.options.path, &db,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                     kv_store.options.vfs),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

struct kv_bytes kv_fixture_read_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &status), 0);
    size_t len = (size_t)status.st_size;
    struct kv_bytes ret = { .bytes = arena_alloc(kv_store.arena, len + 1, 1), .len = len };
    ck_assert_int_eq(read(fd, ret.bytes, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
    return ret;
}

void kv_fixture_write_file(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
    ck_assert_int_eq(close(fd), 0);
}

void kv_fixture_said(const char *part)
{
    ck_assert_msg(strstr(kv_store.err.message, part) != NULL, "%s", kv_store.err.message);
}

size_t kv_fixture_count_files(const char *suffix)
{
    const char *path = kv_fixture_file(suffix), *name = strrchr(path, '/') + 1;
    DIR *folder = opendir(arena_strndup(kv_store.arena, path, (size_t)(name - path)));
    size_t count = 0;

    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += str_has_prefix(entry->d_name, name);
    (void)closedir(folder);
    return count;
}

size_t kv_fixture_count(struct kv *kv, const char *prefix)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct kv_range range = { .prefix = prefix, .limit = 1 };
    struct kv_page page;
    struct error err;

    ck_assert_msg(kv_list(kv, arena, &range, &page, &err) == 0, "%s", err.message);
    return page.len + page.remaining;
}

struct kv_watch *kv_fixture_watch(const char *prefix, uint64_t after)
{
    struct kv_watch *watch = NULL;
    int r = kv_watch(kv_store.kv, prefix, after, &watch, &kv_store.err);

    ck_assert_msg(r == 0, "watch '%s': %s", prefix, kv_store.err.message);
    return watch;
}

const char *kv_fixture_next(struct kv_watch *watch)
{
    struct kv_event event;
    int r = kv_watch_next(watch, kv_store.arena, &event, &kv_store.err);

    if (r == -ERROR_GONE)
        return "GONE";
    ck_assert_msg(r >= 0, "watch: %s", kv_store.err.message);
    if (r == 0)
        return ".";
    if (event.type == KV_DELETE) {
        ck_assert_ptr_null(event.value.text);
        return arena_printf(kv_store.arena, "-%s(%s)", event.value.key, event.previous.text);
    }
    if (!event.previous.revision)
        return arena_printf(kv_store.arena, "+%s=%s", event.value.key, event.value.text);
    return arena_printf(kv_store.arena, "~%s=%s(%s)", event.value.key, event.value.text,
                        event.previous.text);
}

void kv_fixture_await_compacted(uint64_t revision)
{
    AWAIT(kv_compacted(kv_store.kv) >= revision);
}

int64_t kv_fixture_count_rows(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;

    ck_assert_int_eq(sqlite3_open(kv_store.options.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT COUNT(*) FROM history", -1, &statement, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t rows = sqlite3_column_int64(statement, 0);
    ck_assert_int_eq(sqlite3_finalize(statement), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    return rows;
}
