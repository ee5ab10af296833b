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
    { API_GROUP, "enrollments" },
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
    struct manifest_counts counts;
};

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
    buf_clear(&export->buf);
    if (!buf_append_string(&export->buf, "---\n") ||
        !yaml_write(&export->buf, manifest_of(arena, kind, object, export->options->status)))
        return error_set(err, ERROR_TOO_LARGE, "a %s is too large to be written", kind->kind);
    if (fwrite(export->buf.data, 1, export->buf.len, export->file) != export->buf.len)
        return error_set(err, ERROR_UNAVAILABLE, "write: %s", strerrordesc_np(errno));
    export->counts.made++;
    return 0;
}

/* By pages, each let go before the next. Of namespaces with options->ns the first one from this name on: the prefix
 * finds also those that begin like it. */
static int write_kind(struct export *export, struct error *err)
{
    const char *ns = str_is_empty(export->options->ns) ? NULL : export->options->ns;
    bool is_one = ns && !export->resource->kind.namespaced;
    struct kv_range range = {
        .prefix = stored_key(export->arena, export->resource, ns, is_one ? ns : NULL),
        .limit = is_one ? 1 : PAGE,
        .uncounted = true,
    };
    struct kv_page page = { 0 };
    int r;

    do {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();

        r = kv_reader_list(export->reader, arena, &range, &page, err);
        if (r == 0 && is_one && !(page.len && str_equal(page.items[0].key, range.prefix)))
            r = error_set(err, ERROR_NOT_FOUND, "there is no namespace '%s'", ns);
        for (size_t i = 0; r == 0 && i < page.len; i++) {
            CLEANUP(arena_destroyp) struct arena *own = arena_create();

            r = write_object(export, own, &page.items[i], err);
        }
        if (page.remaining)
            range.after = arena_strdup(export->arena, page.items[page.len - 1].key);
    } while (r == 0 && page.remaining && !is_one);
    return r;
}

int export_write(struct arena *arena, struct kv_reader *reader, const struct resources *resources,
                 const struct export_options *options, FILE *file, struct manifest_counts *ret,
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
        r = write_kind(&export, err);
    }
    buf_release(&export.buf);
    *ret = export.counts;
    return r;
}
