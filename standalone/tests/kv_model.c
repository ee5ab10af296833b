#include "standalone/tests/kv_model.h"

#include <check.h>

#include "common/base/str.h"

struct kv_model *kv_model_create(struct arena *arena, size_t max_writes)
{
    struct kv_model *model = arena_new(arena, struct kv_model);

    model->writes = arena_array(arena, struct kv_model_write, max_writes + 2);
    model->head = 1;
    return model;
}

void kv_model_set(struct kv_model *model, uint64_t revision, const char *key, const char *text)
{
    ck_assert_uint_gt(revision, 1);
    ck_assert_ptr_null(model->writes[revision].key); /* a revision is given once */
    model->writes[revision] = (struct kv_model_write){ .key = key, .text = text };
    if (revision > model->head)
        model->head = revision;
}

uint64_t kv_model_find(const struct kv_model *model, const char *key, uint64_t revision)
{
    for (; revision > 1; revision--) {
        const struct kv_model_write *write = &model->writes[revision];
        if (str_equal(write->key, key))
            return write->text ? revision : 0;
    }
    return 0;
}

uint64_t kv_model_next(const struct kv_model *model, const char *prefix, uint64_t revision)
{
    while (++revision <= model->head) {
        if (str_has_prefix(model->writes[revision].key, prefix))
            return revision;
    }
    return 0;
}

void kv_model_check_value(const struct kv_model *model, const struct kv_value *value,
                          uint64_t revision)
{
    const struct kv_model_write *write = &model->writes[revision];

    ck_assert_uint_eq(value->revision, revision);
    ck_assert_str_eq(value->key, write->key);
    ck_assert_str_eq(value->text, write->text);
}

void kv_model_check_event(const struct kv_model *model, const struct kv_event *event,
                          uint64_t revision)
{
    const struct kv_model_write *write = &model->writes[revision];
    uint64_t previous = kv_model_find(model, write->key, revision - 1);

    ck_assert_uint_eq(event->value.revision, revision);
    ck_assert_int_eq(event->type, write->text ? KV_PUT : KV_DELETE);
    if (write->text)
        kv_model_check_value(model, &event->value, revision);
    else
        ck_assert_str_eq(event->value.key, write->key);
    ck_assert_uint_eq(event->previous.revision, previous);
    if (previous)
        kv_model_check_value(model, &event->previous, previous);
}

void kv_model_check_list(const struct kv_model *model, struct kv *kv, const char *prefix,
                         uint64_t revision, const char *const *keys, size_t keys_len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_range range = { .prefix = prefix, .revision = revision };
    struct kv_page page;
    struct error err;
    size_t len = 0;
    int r = kv_list(kv, arena, &range, &page, &err);

    ck_assert_msg(r == 0, "list '%s': %s", prefix, err.message);
    for (size_t i = 0; i < keys_len; i++) {
        uint64_t found = kv_model_find(model, keys[i], revision);
        if (!found || !str_has_prefix(keys[i], prefix))
            continue;
        ck_assert_uint_lt(len, page.len);
        kv_model_check_value(model, &page.items[len++], found);
    }
    ck_assert_uint_eq(page.len, len);
}
