/* Writes that a kube-apiserver was sent (e2e/tools/record_writes.py): the same objects, managers and
 * errors come out here. RECORDED names another folder of recordings. */
#include <dirent.h>

#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/tests/replay.h"

#define MAX_LINE ((size_t)4 << 20)
#define MAX_FAILURES 20 /* that are shown */

static size_t failures;

static void differs(const cJSON *record, const char *what, const char *theirs, const char *ours)
{
    if (failures++ < MAX_FAILURES)
        fprintf(stderr, "%s\n  %s\n  there: %s\n  here:  %s\n", text_of(record), what, theirs,
                ours);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* A manager without its time, as one text; the order is that of times. */
static const char *entry_text(const cJSON *entry)
{
    cJSON *copy = arena_own(test_arena, json_copy(entry), json_free);

    json_remove(copy, "time");
    return value_key(test_arena, copy);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *managers_text(const cJSON *managed_fields)
{
    const char **texts = arena_array(test_arena, const char *, json_len(managed_fields) + 1);
    const char *all = "";
    size_t len = 0;

    json_for_each (entry, managed_fields)
        texts[len++] = entry_text(entry);
    qsort(texts, len, sizeof(*texts), compare_texts);
    for (size_t i = 0; i < len; i++)
        all = arena_printf(test_arena, "%s\n    %s", all, texts[i]);
    return all;
}

/* Without what two servers cannot have alike. */
static const cJSON *plain(const cJSON *object)
{
    static const char *const OWN[] = { "uid", "creationTimestamp", "generation", "resourceVersion",
                                       "managedFields" };
    cJSON *copy = arena_own(test_arena, json_copy(object), json_free);
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(copy, "metadata");

    for (size_t i = 0; i < ARRAY_LEN(OWN); i++)
        json_remove(metadata, OWN[i]);
    json_set(copy, "metadata", metadata);
    return copy;
}

static void compare_objects(const cJSON *record, const struct replay *replay)
{
    const cJSON *theirs = json_get(record, "result");
    const char *their_managers =
        managers_text(json_path(theirs, "metadata", "managedFields", NULL));
    const char *our_managers =
        managers_text(json_path(replay->object, "metadata", "managedFields", NULL));

    if (!json_equal(plain(theirs), plain(replay->object)))
        differs(record, "object", text_of(plain(theirs)), text_of(plain(replay->object)));
    if (!str_equal(their_managers, our_managers))
        differs(record, "managedFields", their_managers, our_managers);
}

/* --- errors ----------------------------------------------------------------------------------- */

/* The same reason at the same field; the sentence is our own. */
static bool has_cause(const cJSON *causes, const cJSON *wanted)
{
    json_for_each (cause, causes) {
        if (json_equal(json_get(cause, "reason"), json_get(wanted, "reason")) &&
            json_equal(json_get(cause, "field"), json_get(wanted, "field")))
            return true;
    }
    return false;
}

static bool holds(const cJSON *causes, const cJSON *others)
{
    json_for_each (other, others) {
        if (!has_cause(causes, other))
            return false;
    }
    return true;
}

/* Rules of CEL are here the rules of the kind. */
static bool rules_refuse(const cJSON *record)
{
    const struct resource *resource = resource_of(json_string(json_get(record, "plural"), ""));
    const struct replay replay = replay_write(record);
    const cJSON *live = json_get(record, "live");
    struct validation validation = { .arena = test_arena,
                                     .object = replay.object,
                                     .old = cJSON_IsObject(live) ? live : NULL,
                                     .errors = field_errors_create(test_arena) };
    bool status = *json_string(json_get(record, "subresource"), "");

    if (!resource->custom || !replay.object)
        return false;
    if (!status)
        resource->validate(&validation);
    else if (resource->validate_status)
        resource->validate_status(&validation);
    return field_errors_count(validation.errors) > 0;
}

static void compare_causes(const cJSON *record, const struct replay *replay)
{
    const cJSON *theirs = json_path(json_get(record, "result"), "details", "causes", NULL);

    if (holds(theirs, replay->causes) &&
        (holds(replay->causes, theirs) || json_get(record, "rules")))
        return;
    if (holds(theirs, replay->causes) && json_len(replay->causes) < json_len(theirs) &&
        resource_of(json_string(json_get(record, "plural"), ""))->custom)
        return; /* the others are rules of CEL that a wrong object broke as well */
    differs(record, "causes", text_of(theirs), text_of(replay->causes));
}

static void compare(const cJSON *record)
{
    int code = (int)json_int(json_get(record, "code"), 0);
    const cJSON *message = json_path(json_get(record, "result"), "message", NULL);
    struct replay replay = replay_write(record);

    if (code == 422 && (replay.code == 200 || replay.code == 201) && rules_refuse(record))
        return;
    if (replay.code != code)
        differs(record, "code", arena_printf(test_arena, "%d %s", code, json_string(message, "")),
                arena_printf(test_arena, "%d %s", replay.code,
                             replay.message ? replay.message : text_of(replay.causes)));
    else if (replay.object)
        compare_objects(record, &replay);
    else if (replay.causes)
        compare_causes(record, &replay);
}

/* --- recordings ------------------------------------------------------------------------------- */

static size_t compare_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0, lines = 0;
    ssize_t len;

    ck_assert_msg(file != NULL, "cannot open %s", path);
    while ((len = getline(&line, &cap, file)) > 0) {
        struct error err = { 0 };
        const cJSON *record = NULL;
        struct arena *outer = test_arena;

        test_arena = arena_create();
        ck_assert_msg(json_parse(test_arena, line, (size_t)len, &record, &err) == 0, "%s",
                      err.message);
        compare(record);
        arena_destroy(test_arena);
        test_arena = outer;
        lines++;
    }
    free(line);
    ck_assert_int_eq(fclose(file), 0);
    return lines;
}

TEST_GROUP("recorded", resources_setup, resources_teardown);

TEST(what_kube_apiserver_made_of_writes_comes_out_here)
{
    const char *folder = getenv("RECORDED");
    struct dirent *entry;
    size_t lines = 0;

    if (!folder)
        folder = "standalone/tests/recorded";
    DIR *dir = opendir(folder);
    ck_assert_msg(dir != NULL, "no folder %s", folder);
    while ((entry = readdir(dir))) {
        if (str_has_suffix(entry->d_name, ".jsonl"))
            lines += compare_file(arena_printf(test_arena, "%s/%s", folder, entry->d_name));
    }
    closedir(dir);
    ck_assert_uint_gt(lines, 0);
    ck_assert_msg(failures == 0, "%zu of %zu writes have another outcome", failures, lines);
}
