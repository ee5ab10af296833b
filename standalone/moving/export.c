#include "standalone/moving/export.h"

#include <errno.h>
#include <string.h>

#include "common/api/names.h"
#include "common/base/str.h"
#include "common/json/yaml_write.h"
#include "standalone/api/stored.h"

/* Objects of a page: of the largest, 24 MiB. */
#define PAGE 16
/* Of one document: KV_MAX_TEXT, indented and escaped. */
#define MAX_DOCUMENT ((size_t)64 << 20)

static const struct {
    const char *group;
    const char *plural;
} ORDER[] = {
    { "", "namespaces" }, /* of all that follows */
    { "", "serviceaccounts" },
    { "", "secrets" },
    { "", "configmaps" },
    { API_GROUP, "proplets" },
    { API_GROUP, "federatedjobs" },
    { API_GROUP, "propellerjobs" },
    { API_GROUP, "trainingrounds" },
    { VMAFX_GROUP, "vmafxnodes" },
    { VMAFX_GROUP, "vmafxjobs" },
    { VMAFX_GROUP, "vmafxmodeltrainings" },
    { API_GROUP, "tasks" },
};

struct export
{
    struct arena *arena; /* of the caller */
    struct kv_reader *reader;
    const struct export_options *options;
    const struct resource *resource;
    FILE *file;
    struct buf buf;
    struct export_counts counts;
};

static int write_document(struct export *export, const cJSON *manifest, struct error *err)
{
    buf_clear(&export->buf);
    if (!buf_append_string(&export->buf, "---\n") || !yaml_write(&export->buf, manifest))
        return error_set(err, ERROR_TOO_LARGE, "a %s is too large to be written",
                         export->resource->kind.kind);
    if (fwrite(export->buf.data, 1, export->buf.len, export->file) != export->buf.len)
        return error_set(err, ERROR_UNAVAILABLE, "write: %s", strerrordesc_np(errno));
    export->counts.written++;
    return 0;
}

/* 1: the Task of that name is there, has finished, and stays behind. */
static int stays_behind(const struct export *export, struct arena *arena, const char *ns,
                        const char *name, struct error *err)
{
    struct kv_value value;
    cJSON *task = NULL;

    int r = kv_reader_get(export->reader, arena, stored_key(arena, export->resource, ns, name),
                          &value, err);
    if (r == -ERROR_NOT_FOUND)
        return 0;
    if (r == 0)
        r = stored_tree(arena, export->resource, &value, 0, &task, err);
    if (r < 0)
        return r;
    return manifest_judge(&export->resource->kind, task) == MANIFEST_FINISHED;
}

static int note_stranded(struct export *export, struct arena *arena, const cJSON *task,
                         struct error *err)
{
    const char *ns = json_string(json_path(task, "metadata", "namespace", NULL), "");
    const char *name = json_string(json_path(task, "metadata", "name", NULL), "");

    json_for_each (needed, json_path(task, "spec", "dependsOn", NULL)) {
        int r = stays_behind(export, arena, ns, json_string(needed, ""), err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        if (!export->counts.stranded++)
            export->counts.stranded_example = arena_printf(export->arena, "%s/%s needs '%.253s'",
                                                           ns, name, json_string(needed, ""));
        return 0;
    }
    return 0;
}

static int write_object(struct export *export, struct arena *arena, const struct kv_value *value,
                        struct error *err)
{
    const struct kube_kind *kind = &export->resource->kind;
    bool keeps_finished = export->options->status || export->options->all;
    cJSON *object = NULL;

    int r = stored_tree(arena, export->resource, value, 0, &object, err);
    if (r < 0)
        return r;

    enum manifest_verdict verdict = manifest_judge(kind, object);

    if (verdict > MANIFEST_FINISHED || (verdict == MANIFEST_FINISHED && !keeps_finished)) {
        export->counts.left_out[verdict]++;
        return 0;
    }
    if (manifest_loses_owners(object))
        export->counts.without_owners++;
    if (!keeps_finished && str_equal(kind->kind, "Task")) {
        r = note_stranded(export, arena, object, err);
        if (r < 0)
            return r;
    }
    return write_document(export, manifest_of(arena, kind, object, export->options->status), err);
}

/* Objects of one page; *ret_last: the key of the last, in the arena; NULL: there are no more. */
static int write_page(struct export *export, const char *prefix, const char *after,
                      struct arena *arena, const char **ret_last, struct error *err)
{
    const struct kv_range range = {
        .prefix = prefix, .after = after, .limit = PAGE, .uncounted = true
    };
    struct kv_page page;

    int r = kv_reader_list(export->reader, arena, &range, &page, err);
    for (size_t i = 0; r == 0 && i < page.len; i++) {
        CLEANUP(arena_destroyp) struct arena *own = arena_create();

        r = write_object(export, own, &page.items[i], err);
    }
    if (r < 0)
        return r;
    *ret_last = page.remaining ? page.items[page.len - 1].key : NULL;
    return 0;
}

static int write_kind(struct export *export, struct error *err)
{
    const struct resource *resource = export->resource;
    const char *ns = str_is_empty(export->options->ns) ? NULL : export->options->ns;
    struct arena *last = arena_create();
    const char *prefix = stored_key(export->arena, resource, ns, NULL);
    const char *after = NULL;
    int r;

    do {
        struct arena *arena = arena_create();

        r = write_page(export, prefix, after, arena, &after, err);
        arena_destroy(last); /* the key that the page began behind */
        last = arena;
    } while (r == 0 && after);
    arena_destroy(last);
    return r;
}

/* The namespace itself, of which the others' prefix would find those that begin like it. */
static int write_namespace(struct export *export, const char *name, struct error *err)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct kv_value value;

    int r = kv_reader_get(export->reader, arena, stored_key(arena, export->resource, NULL, name),
                          &value, err);
    if (r == -ERROR_NOT_FOUND)
        return error_set(err, ERROR_NOT_FOUND, "there is no namespace '%s'", name);
    return r < 0 ? r : write_object(export, arena, &value, err);
}

int export_write(struct arena *arena, struct kv_reader *reader, const struct resources *resources,
                 const struct export_options *options, FILE *file, struct export_counts *ret,
                 struct error *err)
{
    struct export export = { .arena = arena,
                             .reader = reader,
                             .options = options,
                             .file = file,
                             .buf = BUF_INIT(MAX_DOCUMENT) };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(ORDER); i++) {
        export.resource = resources_find(resources, ORDER[i].group, "v1", ORDER[i].plural);
        if (!export.resource->kind.namespaced && !str_is_empty(options->ns))
            r = write_namespace(&export, options->ns, err);
        else
            r = write_kind(&export, err);
    }
    buf_release(&export.buf);
    *ret = export.counts;
    return r;
}
