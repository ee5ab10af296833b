#include "controller/registry/manifest.h"

#include <string.h>

#include "common/api/module_reference.h"
#include "common/base/buf.h"
#include "common/base/str.h"

/* Of a document; an index of 1,000 entries has 12,000. Each takes 80 bytes of memory. */
#define MAX_VALUES 20000
#define MAX_NAMED 160 /* bytes of what a message names of the document */

enum document { DOCUMENT_UNKNOWN, DOCUMENT_MANIFEST, DOCUMENT_INDEX };

static enum document document_of(const char *type)
{
    static const struct {
        const char *type;
        enum document document;
    } TYPES[] = {
        { "application/vnd.oci.image.manifest.v1+json", DOCUMENT_MANIFEST },
        { "application/vnd.docker.distribution.manifest.v2+json", DOCUMENT_MANIFEST },
        { "application/vnd.oci.image.index.v1+json", DOCUMENT_INDEX },
        { "application/vnd.docker.distribution.manifest.list.v2+json", DOCUMENT_INDEX },
    };

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        size_t len = strlen(TYPES[i].type);

        if (str_has_prefix(type, TYPES[i].type) && strchr("; ", type[len]))
            return TYPES[i].document; /* parameters do not count */
    }
    return DOCUMENT_UNKNOWN;
}

bool module_descriptor_read(const cJSON *descriptor, struct module_choice *ret)
{
    const char *digest = json_get_string(descriptor, "digest");
    int64_t bytes = json_int(json_get(descriptor, "size"), -1);

    if (!module_digest_is_valid(digest) || bytes < 0)
        return false;
    *ret = (struct module_choice){ .digest = digest, .bytes = bytes };
    return true;
}

/* Adds a word to those that a message names; those beyond its limit are not named. */
static void name_also(struct buf *names, const char *word)
{
    (void)!buf_printf(names, "%s'%.80s'", names->len ? ", " : "", *word ? word : "none");
}

/* Whether "tar" is a part of the media type. */
static bool is_tar(const char *type)
{
    for (const char *at = type; (at = strstr(at, "tar")); at++) {
        if (at != type && strchr("/.+-", at[-1]) && (!at[3] || strchr(".+-;", at[3])))
            return true;
    }
    return false;
}

/* The only layer of the type; NULL: there is none, or more. */
static const cJSON *only_of_type(const cJSON *layers, const char *type)
{
    const cJSON *found = NULL;

    json_for_each (layer, layers) {
        if (!str_equal(json_get_string(layer, "mediaType"), type))
            continue;
        if (found)
            return NULL;
        found = layer;
    }
    return found;
}

static const cJSON *largest(const cJSON *layers)
{
    const cJSON *found = NULL;
    int64_t most = -1;

    json_for_each (layer, layers) {
        int64_t bytes = json_int(json_get(layer, "size"), -1);

        if (bytes > most && !is_tar(json_get_string(layer, "mediaType"))) {
            found = layer;
            most = bytes;
        }
    }
    return found;
}

static int choose_layer(const cJSON *document, struct module_choice *ret, struct error *err)
{
    CLEANUP(buf_releasep) struct buf names = BUF_INIT(MAX_NAMED);
    const cJSON *layers = json_get(document, "layers");
    const cJSON *layer = only_of_type(layers, "application/wasm");

    if (!layer)
        layer = only_of_type(layers, "application/vnd.wasm.content.layer.v1+wasm");
    if (!layer)
        layer = largest(layers);
    if (layer)
        return module_descriptor_read(layer, ret)
                   ? 0
                   : error_set(err, ERROR_INVALID,
                               "has a layer without a sha256 digest and a size");
    json_for_each (other, layers)
        name_also(&names, json_get_string(other, "mediaType"));
    if (!names.len)
        return error_set(err, ERROR_INVALID, "has no layers");
    return error_set_quoting(err, ERROR_INVALID,
                             "is a container image: push the module as application/wasm (has %s)",
                             buf_string(&names));
}

/* Smaller is better; 0: the entry is for no device. */
static size_t preference(const cJSON *platform)
{
    static const char *const SYSTEMS[] = { "wasip1", "wasip2", "wasi" };
    const char *architecture = json_get_string(platform, "architecture");

    if (!str_equal(architecture, "wasm") && !str_equal(architecture, "wasm32"))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(SYSTEMS); i++) {
        if (str_equal(json_get_string(platform, "os"), SYSTEMS[i]))
            return i + 1;
    }
    return 0;
}

static int choose_entry(struct arena *arena, const cJSON *document, struct module_choice *ret,
                        struct error *err)
{
    CLEANUP(buf_releasep) struct buf names = BUF_INIT(MAX_NAMED);
    const cJSON *best = NULL, *last = NULL;
    size_t best_rank = 0, known = 0;

    json_for_each (entry, json_get(document, "manifests")) {
        const cJSON *platform = json_get(entry, "platform");
        const char *architecture = json_get_string(platform, "architecture");
        const char *system = json_get_string(platform, "os");
        size_t rank = preference(platform);

        if (str_equal(architecture, "unknown") || str_equal(system, "unknown"))
            continue; /* attestations of image builders */
        known++;
        last = entry;
        if (rank && (!best || rank < best_rank)) {
            best = entry;
            best_rank = rank;
        }
        name_also(&names, arena_printf(arena, "%s/%s", system, architecture));
    }
    if (known == 1)
        best = last;
    if (!best)
        return error_set_quoting(err, ERROR_INVALID,
                                 "is an index without an entry of architecture wasm (has %s)",
                                 known ? buf_string(&names) : "no entries");
    if (!module_descriptor_read(best, ret))
        return error_set(err, ERROR_INVALID, "has an entry without a sha256 digest and a size");
    ret->is_index = true;
    return 0;
}

int module_manifest_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                          struct error *err)
{
    static const struct json_reading READING = { .max_values = MAX_VALUES };

    return json_parse_with(arena, text, len, &READING, ret, err);
}

int module_manifest_choose(struct arena *arena, const char *type, const char *text, size_t len,
                           struct module_choice *ret, struct error *err)
{
    const cJSON *document = NULL;
    int r = module_manifest_parse(arena, text, len, &document, err);

    if (r < 0)
        return error_set(err, ERROR_INVALID, "has a manifest that cannot be read: %s",
                         arena_strdup(arena, err ? err->message : ""));

    const char *stated = json_string(json_get(document, "mediaType"), type ? type : "");

    switch (document_of(stated)) {
    case DOCUMENT_MANIFEST:
        return choose_layer(document, ret, err);
    case DOCUMENT_INDEX:
        return choose_entry(arena, document, ret, err);
    case DOCUMENT_UNKNOWN:
        break;
    }
    return error_set_quoting(err, ERROR_INVALID, "has a manifest of type '%.80s'", stated);
}
