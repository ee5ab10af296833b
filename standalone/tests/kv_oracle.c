#include "standalone/tests/kv_oracle.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/random.h"

bool kv_oracle_deletes(uint64_t n)
{
    return n % 7 == 3;
}

const char *kv_oracle_text(struct arena *arena, size_t key, uint64_t n)
{
    uint64_t random = 1 + n * 1000 + key;
    size_t len = random_below(&random, n % 50 == 0 ? 40000 : 400);
    char *text = arena_printf(arena, "%zu %" PRIu64 " %0*d", key, n, (int)len + 1, 0);
    size_t end = strlen(text);

    for (size_t i = end - len; i < end; i++)
        text[i] = (char)('a' + (i * i + n) % 26);
    return text;
}

const char *kv_oracle_name(struct arena *arena, size_t key)
{
    return arena_printf(arena, "/registry/tasks/%02zu", key);
}

int kv_oracle_write(struct kv *kv, size_t key, uint64_t n, uint64_t *ret_revision,
                    struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *name = kv_oracle_name(arena, key);

    *ret_revision = 0;
    if (!kv_oracle_deletes(n)) {
        const char *text = kv_oracle_text(arena, key, n);
        return kv_put(kv, name, text, strlen(text), KV_ANY, ret_revision, err);
    }
    int r = kv_delete(kv, name, KV_ANY, ret_revision, err);
    return r == -ERROR_NOT_FOUND ? 0 : r;
}

/* Which one it is, from the last acknowledged write to the last that was begun; 0: none of them. */
static uint64_t find_write(struct arena *arena, const struct kv_value *value, size_t key,
                           const struct kv_known *known)
{
    const char *blank = strchr(value->text, ' ');
    uint64_t n = blank ? strtoull(blank, NULL, 10) : 0;
    bool is_one = n >= known->n && n <= known->asked && !kv_oracle_deletes(n) &&
                  str_equal(value->text, kv_oracle_text(arena, key, n));

    return is_one ? n : 0;
}

static uint64_t find_deletion(const struct kv_known *known)
{
    for (uint64_t n = known->n; n <= known->asked; n++) {
        if (n == 0 || kv_oracle_deletes(n))
            return n;
    }
    ck_assert_msg(false, "write %" PRIu64 " is lost", known->n);
    return 0;
}

void kv_oracle_check(struct kv *kv, size_t key, struct kv_known *known)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_value value;
    struct error err;
    int r = kv_get(kv, arena, kv_oracle_name(arena, key), 0, &value, &err);

    if (r == -ERROR_NOT_FOUND) {
        known->n = find_deletion(known);
        known->revision = 0;
        return;
    }
    ck_assert_msg(r == 0, "%s", err.message);
    uint64_t n = find_write(arena, &value, key, known);
    ck_assert_msg(n != 0, "'%s' holds none of the writes %" PRIu64 " to %" PRIu64 ": %.40s",
                  value.key, known->n, known->asked, value.text);
    if (n == known->n && known->revision)
        ck_assert_uint_eq(value.revision, known->revision);
    known->n = n;
    known->revision = value.revision;
}
