#include "standalone/tests/moving_fixture.h"

#include <check.h>
#include <string.h>

#include "common/base/str.h"
#include "common/json/yaml.h"

struct kv_fixture second_store;
struct in_process second = { .user = { .name = "import", .role = ROLE_ADMIN },
                             .user_agent = "import" };
struct export_counts exported;
struct import_counts imported;
const char *import_refusals;

void moving_setup(void)
{
    api_setup();
    kv_fixture_begin(&second_store);
    kv_fixture_open(&second_store);

    const struct api_options options = { .kv = second_store.kv,
                                         .resources = test_resources,
                                         .clock = &second_store.clock.clock };

    second.api = api_create(&options);
}

void moving_teardown(void)
{
    api_destroy(second.api);
    kv_fixture_end(&second_store);
    api_teardown();
}

const char *export_of(const struct kv_fixture *store, const struct export_options *options)
{
    struct kv_reader *reader = NULL;
    struct error err = { 0 };
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);

    ck_assert_int_eq(kv_reader_open(store->options.path, &reader, &err), 0);
    int r = export_write(test_arena, reader, test_resources, options, file, &exported, &err);
    ck_assert_msg(r == 0, "%s", err.message);
    kv_reader_close(reader);
    ck_assert_int_eq(fclose(file), 0);
    return arena_own(test_arena, text, free);
}

static void note_refused(void *ctx UNUSED, const char *text)
{
    import_refusals = arena_printf(test_arena, "%s%s\n", import_refusals, text);
}

int try_import(const char *text, http_roundtrip_fn *roundtrip, void *ctx, struct error *err)
{
    const struct import_options options = { .roundtrip = roundtrip,
                                            .ctx = ctx,
                                            .resources = test_resources,
                                            .source = "f.yaml",
                                            .refused = note_refused };
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    import_refusals = "";
    ck_assert_ptr_nonnull(file);
    int r = import_read(file, &options, &imported, err);
    ck_assert_int_eq(fclose(file), 0);
    return r;
}

void import_into(struct api *target, const char *text)
{
    struct in_process caller = { .api = target, .user = second.user, .user_agent = "import" };
    struct error err = { 0 };
    int r = try_import(text, in_process_roundtrip, &caller, &err);

    ck_assert_msg(r == 0, "%s", err.message);
}

/* --- what is moved --- */

void make_task(const char *name, const char *more_metadata, const char *more_spec)
{
    (void)ask("POST", TASKS, task_text(name, more_metadata, more_spec), 201);
}

void set_status(const char *plural, const char *name, const char *status)
{
    (void)ask_patch(arena_printf(test_arena, GROUP "%s/%s/status", plural, name),
                    "merge-patch+json", arena_printf(test_arena, "{\"status\":%s}", status), 200);
}

static void make(const char *collection, const char *api_version, const char *kind,
                 const char *name, const char *more_metadata, const char *members)
{
    (void)ask(
        "POST", collection,
        arena_printf(test_arena,
                     "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"%s}%s}",
                     api_version, kind, name, more_metadata, members),
        201);
}

void make_plain(const char *collection, const char *api_version, const char *kind, const char *name)
{
    make(collection, api_version, kind, name, "", "");
}

void make_configmap(const char *name, const char *more_metadata, const char *data)
{
    make(CONFIGMAPS, "v1", "ConfigMap", name, more_metadata,
         arena_printf(test_arena, ",\"data\":%s", data));
}

void make_job(const char *name)
{
    make(GROUP "propellerjobs", API_VERSION, "PropellerJob", name, "",
         arena_printf(test_arena, ",\"spec\":{\"name\":\"%s\",\"taskRefs\":[\"a\"]}", name));
}

const char *names_in(const char *yaml)
{
    const char *names = "";
    const cJSON *documents;

    ck_assert_int_eq(yaml_parse_all(test_arena, yaml, strlen(yaml), &documents, NULL), 0);
    json_for_each (document, documents)
        names = arena_printf(test_arena, "%s%s%s %s", names, *names ? ", " : "",
                             json_string(json_get(document, "kind"), "?"), meta(document, "name"));
    return names;
}

void make_finished(void)
{
    make_task("done", "", "");
    set_status("tasks", "done",
               "{\"phase\":\"completed\",\"results\":42,\"observedGeneration\":1,\"conditions\":[{"
               "\"type\":\"Completed\",\"status\":\"True\",\"observedGeneration\":1}]}");
    make_task("failed", "", "");
    set_status("tasks", "failed", "{\"phase\":\"failed\",\"error\":\"no\"}");
    make_task("again", "", "");
    set_status(
        "tasks", "again",
        "{\"phase\":\"failed\",\"conditions\":[{\"type\":\"Failed\",\"status\":\"False\"}]}");
    make_task("nightly", "", ",\"schedule\":\"0 3 * * *\",\"isRecurring\":true");
    set_status("tasks", "nightly", "{\"phase\":\"completed\"}");
    make_task("running", "", "");
    set_status("tasks", "running", "{\"phase\":\"running\"}");
    make_task("needs", "", ",\"dependsOn\":[\"running\",\"done\"]");
    make_job("j");
    set_status("propellerjobs", "j", "{\"phase\":\"Completed\",\"taskCount\":1}");
}
