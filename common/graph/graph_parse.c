#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/graph/graph.h"
#include "common/json/place.h"
#include "common/json/yaml.h"

/* Bytes of a path in an error. */
#define MAX_PATH_SHOWN 512
#define FILE_NAME "resources.yaml"

/* Attributes as they are written, sorted by key; the value "" removes the inherited one. */
struct overlay {
    const struct graph_pair *items[GRAPH_MAX_ATTRIBUTES];
    size_t len;
};

struct builder {
    struct arena *scratch;
    struct graph *graph;
    struct graph_vertex *vertices;
    struct map *sets;        /* name -> struct overlay */
    struct map *environment; /* variable -> the key that has it */
    struct map *unnamed;     /* path of a vertex, "/", type -> size_t: children without a name */
    struct field_errors *errors;
};

#define FAULT(b, type, place, value, ...)                                                          \
    field_error((b)->errors, (type), path_of((b), (place)), (value), __VA_ARGS__)
#define WRONG(b, place, value, ...) FAULT(b, FIELD_ERROR_INVALID, place, value, __VA_ARGS__)

/* Errors that are not kept need no path. */
static const char *path_of(const struct builder *b, const struct json_place *place)
{
    CLEANUP(buf_releasep) struct buf path = BUF_INIT(MAX_PATH_SHOWN);

    if (field_errors_count(b->errors) >= FIELD_ERRORS_MAX)
        return "";
    if (!json_place_write(place, &path))
        return arena_printf(b->scratch, "%s...", buf_string(&path));
    return arena_strdup(b->scratch, buf_string(&path));
}

/* The value, if an error may repeat it. */
static const cJSON *shown(const cJSON *value)
{
    return cJSON_IsArray(value) || cJSON_IsObject(value) ? NULL : value;
}

static const cJSON *quoted(const struct builder *b, const char *text)
{
    return arena_own(b->scratch, cJSON_CreateString(text), json_free);
}

/* Reports each key that is not in the list. */
static void check_keys(struct builder *b, const struct json_place *place, const cJSON *object,
                       const char *const *known, const char *names)
{
    json_for_each (member, object) {
        if (!str_is_one_of(member->string, known))
            WRONG(b, place, quoted(b, member->string), "is no field: the fields are %s", names);
    }
}

#define NAME_RULE "must be a string of 1 to %u bytes without '/' and control characters"

/* Control characters are those of ASCII and of Latin-1 (U+0080 to U+009F). */
static bool is_name(const char *text)
{
    size_t len = strlen(text);

    if (!len || len > GRAPH_MAX_NAME || strchr(text, '/'))
        return false;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 0x7f || (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f))
            return false;
    }
    return true;
}

/* --- attributes ------------------------------------------------------------------------------- */

/* The map's own copy of "key=value" has the value. */
static const struct graph_pair *intern(struct builder *b, const char *key, const char *value)
{
    struct graph *graph = b->graph;
    const struct graph_pair *pair = graph_pair_of(graph, key, value);

    if (pair)
        return pair;

    const char *text = arena_printf(b->scratch, "%s=%s", key, value);
    struct graph_pair *new = arena_new(graph->arena, struct graph_pair);

    map_set(graph->pairs, text, new);
    new->key = arena_strdup(graph->arena, key);
    new->value = map_key(graph->pairs, text) + strlen(key) + 1;
    return new;
}

/* Two keys with one variable could not both be in an environment. */
static bool check_key(struct builder *b, const struct json_place *place, const char *key)
{
    if (!graph_is_key(key)) {
        WRONG(b, place, quoted(b, key),
              "a key must have 1 to %u characters of A-Z, a-z, 0-9, '.', '_' and '-'",
              GRAPH_MAX_KEY);
        return false;
    }

    const char *variable = graph_variable(b->scratch, GRAPH_VARIABLE_PREFIX, key);
    const char *other = map_get(b->environment, variable);

    if (other && !str_equal(other, key)) {
        FAULT(b, FIELD_ERROR_DUPLICATE, place, quoted(b, key), "%s is the variable of %s already",
              variable, other);
        return false;
    }
    if (!other)
        map_set(b->environment, variable, (void *)key);
    return true;
}

static void insert(struct overlay *overlay, const struct graph_pair *pair)
{
    size_t at = overlay->len++;

    for (; at && strcmp(overlay->items[at - 1]->key, pair->key) > 0; at--)
        overlay->items[at] = overlay->items[at - 1];
    overlay->items[at] = pair;
}

static void read_attribute(struct builder *b, const struct json_place *map, const cJSON *value,
                           struct overlay *ret)
{
    struct json_place place = { map, .name = value->string };
    const char *text = json_string(value, NULL);

    if (!check_key(b, map, value->string))
        return;
    if (!text && shown(value) && !cJSON_IsNull(value))
        WRONG(b, &place, value, "must be a string; write \"%s\"",
              json_text(b->scratch, value, NULL));
    else if (!text)
        WRONG(b, &place, NULL, "must be a string");
    else if (strlen(text) > GRAPH_MAX_VALUE)
        FAULT(b, FIELD_ERROR_TOO_LONG, &place, NULL, "must have at most %u bytes", GRAPH_MAX_VALUE);
    else
        insert(ret, intern(b, value->string, text));
}

static void read_map(struct builder *b, const struct json_place *place, const cJSON *object,
                     struct overlay *ret)
{
    if (json_len(object) > GRAPH_MAX_ATTRIBUTES) {
        FAULT(b, FIELD_ERROR_TOO_MANY, place, NULL, "must have at most %u keys",
              GRAPH_MAX_ATTRIBUTES);
        return;
    }
    json_for_each (value, object)
        read_attribute(b, place, value, ret);
}

static void read_sets(struct builder *b, const cJSON *sets)
{
    struct json_place place = { NULL, .name = "attributes" };

    if (!sets)
        return;
    if (!cJSON_IsObject(sets)) {
        WRONG(b, &place, shown(sets), "must be a map of sets, each a map of strings");
        return;
    }
    json_for_each (set, sets) {
        struct json_place own = { &place, .name = set->string };
        struct overlay *overlay = arena_new(b->scratch, struct overlay);

        if (!is_name(set->string))
            WRONG(b, &place, quoted(b, set->string), "a name " NAME_RULE, GRAPH_MAX_NAME);
        else if (cJSON_IsObject(set))
            read_map(b, &own, set, overlay);
        else
            WRONG(b, &own, shown(set), "must be a map of strings");
        map_set(b->sets, set->string, overlay);
    }
}

/* Puts the overlay over what is inherited. Returns false if that is too much. */
static bool merge(struct builder *b, struct graph_vertex *vertex, const struct overlay *overlay)
{
    const struct graph_pair *merged[2 * GRAPH_MAX_ATTRIBUTES] = { 0 };
    size_t len = 0, bytes = 0, old = 0, new = 0;

    while (old < vertex->attribute_count || new < overlay->len) {
        int order = old == vertex->attribute_count ? 1
                    : new == overlay->len
                        ? -1
                        : strcmp(vertex->attributes[old]->key, overlay->items[new]->key);
        const struct graph_pair *pair = order < 0 ? vertex->attributes[old] : overlay->items[new];

        old += order <= 0;
        new += order >= 0;
        if (!*pair->value)
            continue;
        merged[len++] = pair;
        bytes += strlen(pair->key) + strlen(pair->value);
    }
    if (len > GRAPH_MAX_ATTRIBUTES || bytes > GRAPH_MAX_ATTRIBUTE_BYTES)
        return false;

    const struct graph_pair **kept = arena_array(b->graph->arena, const struct graph_pair *, len);
    for (size_t i = 0; i < len; i++)
        kept[i] = merged[i];
    vertex->attributes = kept;
    vertex->attribute_count = len;
    return true;
}

static void read_attributes(struct builder *b, const struct json_place *entry, const cJSON *item,
                            struct graph_vertex *vertex)
{
    struct json_place place = { entry, .name = "attributes" };
    const char *set = json_string(item, NULL);
    struct overlay own = { .len = 0 };
    const struct overlay *overlay = &own;

    if (!item)
        return;
    if (set)
        overlay = map_get(b->sets, set);
    else if (cJSON_IsObject(item))
        read_map(b, &place, item, &own);

    if (!overlay)
        WRONG(b, &place, item, "is none of the sets below attributes");
    else if (!set && !cJSON_IsObject(item))
        WRONG(b, &place, shown(item), "must be a map of strings, or the name of a set");
    else if (!merge(b, vertex, overlay))
        FAULT(b, FIELD_ERROR_TOO_MANY, &place, NULL,
              "must have at most %u keys and %u bytes with the inherited ones",
              GRAPH_MAX_ATTRIBUTES, GRAPH_MAX_ATTRIBUTE_BYTES);
}

/* --- entries ---------------------------------------------------------------------------------- */

/* NULL: there is none that can be used. */
static const char *read_type(struct builder *b, const struct json_place *entry, const cJSON *item)
{
    struct json_place place = { entry, .name = "type" };
    const char *text = json_string(item, NULL);

    if (!item) {
        FAULT(b, FIELD_ERROR_REQUIRED, &place, NULL, "the class of the resource");
        return NULL;
    }
    if (text && graph_is_class(text))
        return text;
    WRONG(
        b, &place, shown(item),
        "must be a string of at most 63 characters of A-Z, a-z, 0-9, '.', '_' and '-' that begins "
        "and ends with a letter or digit, but not core, memory or gpu");
    return NULL;
}

static int64_t read_count(struct builder *b, const struct json_place *entry, const cJSON *item)
{
    struct json_place place = { entry, .name = "count" };
    int64_t count = json_int(item, item ? -1 : 0);

    if (json_is_number(item) || !item) {
        if (count >= 0 && count <= GRAPH_MAX_UNITS)
            return count ? count : 1;
    }
    WRONG(b, &place, shown(item), "must be a whole number from 0 to %d", GRAPH_MAX_UNITS);
    return 1;
}

/* NULL: usable anywhere. */
static const char *read_home(struct builder *b, const struct json_place *entry, const cJSON *item)
{
    struct json_place place = { entry, .name = "parent" };
    const char *text = json_string(item, NULL);
    const char *slash = text ? strchr(text, '/') : NULL;

    if (!item || str_equal(text, "cluster"))
        return NULL;
    if (text && str_is_dns_subdomain(slash ? slash + 1 : text) &&
        (!slash || str_is_dns_label(arena_strndup(b->scratch, text, (size_t)(slash - text)))))
        return arena_strdup(b->graph->arena, text);
    WRONG(b, &place, shown(item), "must be cluster, NAMESPACE/PROPLET or the name of a Node");
    return NULL;
}

/* Gives the vertex its path. A name counts for its siblings only, and so does a number. */
static void name_vertex(struct builder *b, const struct json_place *entry, const cJSON *item,
                        const char *type, struct graph_vertex *vertex)
{
    struct json_place place = { entry, .name = "name" };
    const char *above =
        vertex->parent == GRAPH_NONE ? "/cluster" : b->vertices[vertex->parent].path;
    const char *name = json_string(item, NULL);

    if (item && (!name || !is_name(name))) {
        WRONG(b, &place, shown(item), NAME_RULE, GRAPH_MAX_NAME);
        name = NULL;
    }
    if (!name) {
        const char *key = arena_printf(b->scratch, "%s/%s", above, type);
        size_t *count = map_get(b->unnamed, key);

        if (!count)
            map_set(b->unnamed, key, count = arena_new(b->scratch, size_t));
        name = arena_printf(b->scratch, "%s%zu", type, (*count)++);
    }

    const char *path = arena_printf(b->scratch, "%s/%s", above, name);

    if (map_get(b->graph->by_path, path)) {
        FAULT(b, FIELD_ERROR_DUPLICATE, item ? &place : entry, quoted(b, name),
              "a sibling has this name");
        /* The vertices below it have no fault for that. */
        path = arena_printf(b->scratch, "%s//%zu", path, b->graph->len);
    }
    map_set(b->graph->by_path, path, vertex);
    vertex->path = map_key(b->graph->by_path, path);
}

static struct graph_class *class_of(struct graph *graph, const char *type)
{
    struct graph_class *class = map_get(graph->by_class, type);

    if (!class) {
        class = arena_new(graph->arena, struct graph_class);
        class->name = arena_strdup(graph->arena, type);
        map_set(graph->by_class, type, class);
    }
    return class;
}

static void read_entries(struct builder *b, const struct json_place *place, const cJSON *list,
                         size_t parent, size_t depth);

static void read_children(struct builder *b, const struct json_place *entry, const cJSON *with,
                          size_t parent, size_t depth)
{
    struct json_place place = { entry, .name = "with" };

    if (!with)
        return;
    if (!cJSON_IsArray(with))
        WRONG(b, &place, shown(with), "must be a list of resources");
    else if (depth == GRAPH_MAX_DEPTH && with->child)
        FAULT(b, FIELD_ERROR_TOO_MANY, &place, NULL, "must have at most %u levels",
              GRAPH_MAX_DEPTH);
    else
        read_entries(b, &place, with, parent, depth + 1);
}

static void read_entry(struct builder *b, const struct json_place *place, const cJSON *item,
                       size_t parent, size_t depth)
{
    static const char *const TOP[] = {
        "type", "name", "count", "parent", "attributes", "with", NULL
    };
    static const char *const BELOW[] = { "type", "name", "count", "attributes", "with", NULL };
    bool is_top = parent == GRAPH_NONE;

    if (!cJSON_IsObject(item)) {
        WRONG(b, place, shown(item), "must be a map with a type");
        return;
    }
    check_keys(b, place, item, is_top ? TOP : BELOW,
               is_top ? "type, name, count, parent, attributes and with"
                      : "type, name, count, attributes and with");

    size_t index = b->graph->len++;
    struct graph_vertex *vertex = &b->vertices[index];
    const struct graph_vertex *above = is_top ? NULL : &b->vertices[parent];
    const char *type = read_type(b, place, json_get(item, "type"));

    *vertex = (struct graph_vertex){
        .class = class_of(b->graph, type ? type : ""),
        .size = read_count(b, place, json_get(item, "count")),
        .home = is_top ? read_home(b, place, json_get(item, "parent")) : above->home,
        .parent = parent,
        .attributes = is_top ? NULL : above->attributes,
        .attribute_count = is_top ? 0 : above->attribute_count,
    };
    name_vertex(b, place, json_get(item, "name"), type ? type : "", vertex);
    if (is_top)
        vertex->backend = json_get(item, "name") ? graph_name_of(vertex) : NULL;
    else
        vertex->backend = above->backend;
    read_attributes(b, place, json_get(item, "attributes"), vertex);
    read_children(b, place, json_get(item, "with"), index, depth);
    vertex->end = b->graph->len;
}

static void read_entries(struct builder *b, const struct json_place *place, const cJSON *list,
                         size_t parent, size_t depth)
{
    size_t index = 0;

    json_for_each (item, list) {
        struct json_place own = { place, .index = index };

        read_entry(b, &own, item, parent, depth);
        index++;
    }
}

/* All entries of the list and below them, up to one more than are allowed. */
static size_t count_entries(const cJSON *list)
{
    size_t count = 0;

    json_for_each (item, list) {
        if (count <= GRAPH_MAX_VERTICES)
            count += 1 + count_entries(json_get(item, "with"));
    }
    return count;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void read_resources(struct builder *b, const cJSON *resources)
{
    struct json_place place = { NULL, .name = "resources" };
    size_t count = count_entries(resources);

    if (!resources)
        FAULT(b, FIELD_ERROR_REQUIRED, &place, NULL, "the list of resources");
    else if (!cJSON_IsArray(resources) || !count)
        WRONG(b, &place, shown(resources), "must be a list of at least one resource");
    else if (count > GRAPH_MAX_VERTICES)
        FAULT(b, FIELD_ERROR_TOO_MANY, &place, NULL, "must have at most %u vertices",
              GRAPH_MAX_VERTICES);
    else {
        b->vertices = arena_array(b->graph->arena, struct graph_vertex, count);
        b->graph->vertices = b->vertices;
        read_entries(b, &place, resources, GRAPH_NONE, 1);
    }
}

static void read_root(struct builder *b, const cJSON *root)
{
    static const char *const KNOWN[] = { "resources", "attributes", NULL };
    struct json_place file = { NULL, .name = FILE_NAME };

    if (!cJSON_IsObject(root)) {
        WRONG(b, &file, shown(root), "must be a map with the list resources");
        return;
    }
    check_keys(b, &file, root, KNOWN, "resources and attributes");
    /* The name of the top entry has this variable. */
    map_set(b->environment, GRAPH_VARIABLE_PREFIX "BACKEND", (void *)"the name at the top");
    read_sets(b, json_get(root, "attributes"));
    read_resources(b, json_get(root, "resources"));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct graph_class *const *)a)->name,
                  (*(const struct graph_class *const *)b)->name);
}

/* Whether a vertex above has the class as well. */
static bool is_nested(const struct graph *graph, const struct graph_vertex *vertex)
{
    for (size_t up = vertex->parent; up != GRAPH_NONE; up = graph->vertices[up].parent) {
        if (graph->vertices[up].class == vertex->class)
            return true;
    }
    return false;
}

static void list_classes(struct graph *graph)
{
    const struct graph_class **list =
        arena_array(graph->arena, const struct graph_class *, map_len(graph->by_class));
    const char *name;
    void *value;

    for (size_t i = 0; i < graph->len; i++) {
        struct graph_class *class = map_get(graph->by_class, graph->vertices[i].class->name);

        class->len++;
        class->units += graph->vertices[i].size;
        class->is_nested |= is_nested(graph, &graph->vertices[i]);
    }
    for (size_t at = 0; map_next(graph->by_class, &at, &name, &value);) {
        struct graph_class *class = value;

        list[graph->class_count++] = class;
        class->vertices = arena_array(graph->arena, size_t, class->len);
        class->len = 0;
    }
    qsort(list, graph->class_count, sizeof(const struct graph_class *), by_name);
    graph->classes = list;
    for (size_t i = 0; i < graph->len; i++) {
        struct graph_class *class = map_get(graph->by_class, graph->vertices[i].class->name);

        ((size_t *)class->vertices)[class->len++] = i;
    }
}

/* Of the attributes that a vertex has; a set that is not used has no variables. */
static void list_environment(struct graph *graph, struct arena *scratch)
{
    struct map *seen = map_of_arena(scratch);
    const char *variable;
    void *value;

    for (size_t i = 0; i < graph->len; i++) {
        const struct graph_vertex *vertex = &graph->vertices[i];

        if (vertex->parent != GRAPH_NONE &&
            vertex->attributes == graph->vertices[vertex->parent].attributes)
            continue;
        for (size_t k = 0; k < vertex->attribute_count; k++)
            map_set(seen, vertex->attributes[k]->key, graph);
    }

    const char **list = arena_array(graph->arena, const char *, map_len(seen));

    for (size_t at = 0; map_next(seen, &at, &variable, &value);)
        list[graph->environment_count++] =
            graph_variable(graph->arena, GRAPH_VARIABLE_PREFIX, variable);
    qsort(list, graph->environment_count, sizeof(*list), by_text);
    graph->environment = list;
}

/* *ret is NULL for a text without a document. */
static int read_text(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                     struct error *err)
{
    const cJSON *documents;

    *ret = NULL;
    if (len > GRAPH_MAX_TEXT)
        return error_set(err, ERROR_TOO_LARGE, "must have at most %u bytes", GRAPH_MAX_TEXT);
    /* libyaml refuses some of JSON: tabs between tokens, escapes of two parts. */
    if (text[strspn(text, " \t\r\n")] == '{' && json_parse(arena, text, len, ret, NULL) == 0)
        return 0;

    int r = yaml_parse_all(arena, text, len, &documents, err);
    if (r < 0)
        return r;
    if (json_len(documents) > 1)
        return error_set(err, ERROR_INVALID, "must have one document, has %zu",
                         json_len(documents));
    *ret = documents->child;
    return 0;
}

static struct graph *graph_create(void)
{
    struct arena *arena = arena_create();
    struct graph *graph = arena_new(arena, struct graph);

    graph->arena = arena;
    graph->by_path = map_of_arena(arena);
    graph->by_class = map_of_arena(arena);
    graph->pairs = map_of_arena(arena);
    atomic_init(&graph->references, 1);
    return graph;
}

bool graph_parse(const char *text, size_t len, struct graph **ret, struct field_errors *errors)
{
    CLEANUP(arena_destroyp) struct arena *scratch = arena_create();
    CLEANUP(graph_unrefp) struct graph *graph = graph_create();
    struct builder b = { .scratch = scratch,
                         .graph = graph,
                         .sets = map_of_arena(scratch),
                         .environment = map_of_arena(scratch),
                         .unnamed = map_of_arena(scratch),
                         .errors = errors };
    size_t before = field_errors_count(errors);
    const cJSON *root = NULL;
    struct error err = { 0 };

    int r = read_text(scratch, text, len, &root, &err);
    /* A key that is quoted may have any characters. */
    for (char *c = err.message; *c; c++) {
        if (iscntrl((unsigned char)*c))
            *c = '?';
    }
    if (r < 0)
        field_error(errors, FIELD_ERROR_INVALID, FILE_NAME, NULL, "%s", err.message);
    else if (root)
        read_root(&b, root);
    if (field_errors_count(errors) > before)
        return false;
    list_classes(graph);
    list_environment(graph, scratch);
    *ret = TAKE(graph);
    return true;
}
