#include "standalone/patch/field_set.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/field_errors.h"
#include "common/schema/members.h"

/* A name or key in a message; longer ones are cut. */
#define MAX_ELEMENT_TEXT 4096

static int compare_numbers(double a, double b)
{
    return a < b ? -1 : a > b;
}

/* Numbers, strings, booleans, lists, maps, null: in this order. */
static int rank(const cJSON *value)
{
    if (json_is_number(value))
        return 0;
    if (cJSON_IsString(value))
        return 1;
    if (cJSON_IsBool(value))
        return 2;
    if (cJSON_IsArray(value))
        return 3;
    return cJSON_IsObject(value) ? 4 : 5;
}

static int compare_values(const cJSON *a, const cJSON *b)
{
    int ranks = rank(a) - rank(b);

    if (ranks)
        return ranks;
    if (json_is_number(a))
        return compare_numbers(json_double(a, 0), json_double(b, 0));
    if (cJSON_IsString(a))
        return strcmp(json_string(a, ""), json_string(b, ""));
    if (cJSON_IsBool(a))
        return (int)json_bool(a, false) - (int)json_bool(b, false);
    return 0;
}

static int compare_keys(const cJSON *a, const cJSON *b)
{
    const cJSON *one = json_first(a), *other = json_first(b);

    for (; one && other; one = one->next, other = other->next) {
        int r = strcmp(one->string, other->string);

        if (r == 0)
            r = compare_values(one, other);
        if (r)
            return r;
    }
    return one ? 1 : other ? -1 : 0;
}

int field_element_compare(const struct field_element *a, const struct field_element *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case ELEMENT_FIELD:
        return strcmp(a->name, b->name);
    case ELEMENT_KEY:
        return compare_keys(a->value, b->value);
    case ELEMENT_VALUE:
        return compare_values(a->value, b->value);
    case ELEMENT_INDEX:
        return a->index < b->index ? -1 : a->index > b->index;
    }
    return 0;
}

static bool append_value(struct buf *buf, struct arena *arena, const cJSON *value)
{
    const char *text = json_string(value, NULL);

    return text ? buf_append_quoted(buf, text, strlen(text))
                : buf_append_string(buf, json_text(arena, value, NULL));
}

static bool append_key(struct buf *buf, struct arena *arena, const cJSON *key)
{
    bool fits = true;

    json_for_each (part, key)
        fits = fits && buf_printf(buf, "%s=", part->string) && append_value(buf, arena, part) &&
               (!part->next || buf_append_string(buf, ","));
    return fits;
}

const char *field_element_text(struct arena *arena, const struct field_element *element)
{
    CLEANUP(buf_releasep) struct buf buf = BUF_INIT(MAX_ELEMENT_TEXT);
    bool fits = true;

    switch (element->kind) {
    case ELEMENT_FIELD:
        return arena_printf(arena, ".%s", element->name);
    case ELEMENT_INDEX:
        return arena_printf(arena, "[%lld]", (long long)element->index);
    case ELEMENT_KEY:
        fits = append_key(&buf, arena, element->value);
        break;
    case ELEMENT_VALUE:
        fits = buf_append_string(&buf, "=") && append_value(&buf, arena, element->value);
        break;
    }
    return arena_printf(arena, "[%s%s]", buf_string(&buf), fits ? "" : "...");
}

/* false: there is no room for more. */
static bool append_path(struct arena *arena, struct buf *text, const struct field_path *path)
{
    const char *element;
    size_t room;

    if (!path)
        return true;
    if (!append_path(arena, text, path->parent))
        return false;
    element = field_element_text(arena, &path->element);
    room = text->max - text->len;
    return buf_append(text, element, str_utf8_cut(element, strlen(element), room)) &&
           strlen(element) <= room;
}

const char *field_path_text(struct arena *arena, const struct field_path *path)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(FIELD_PATH_TEXT_MAX);

    (void)append_path(arena, &text, path);
    return arena_strdup(arena, buf_string(&text));
}

/* --- FieldsV1 --------------------------------------------------------------------------------- */

/* Keys are compared member by member, so these stand in order. */
static const cJSON *sorted_key(struct arena *arena, const cJSON *key)
{
    size_t len;
    const cJSON **members = members_in_order(arena, key, &len);
    cJSON *sorted = json_object(arena);

    for (size_t i = 0; i < len && cJSON_IsObject(key); i++)
        members_append(sorted, members[i]->string, json_copy(members[i]));
    return sorted;
}

enum reading { READ_ELEMENT, READ_OTHER, READ_WRONG };

static enum reading read_element(struct arena *arena, const char *text, struct field_element *ret)
{
    const cJSON *value = NULL;

    if (strlen(text) < 2 || text[1] != ':')
        return READ_WRONG;
    *ret = (struct field_element){ 0 };
    switch (text[0]) {
    case 'f':
        ret->kind = ELEMENT_FIELD;
        ret->name = arena_strdup(arena, text + 2);
        return READ_ELEMENT;
    case 'i':
        ret->kind = ELEMENT_INDEX;
        return str_to_int64(text + 2, &ret->index) ? READ_ELEMENT : READ_WRONG;
    case 'k':
    case 'v':
        if (json_parse(arena, text + 2, strlen(text + 2), &value, NULL) < 0)
            return READ_WRONG;
        ret->kind = text[0] == 'k' ? ELEMENT_KEY : ELEMENT_VALUE;
        ret->value = text[0] == 'k' ? sorted_key(arena, value) : value;
        return text[0] == 'k' && !cJSON_IsObject(value) ? READ_WRONG : READ_ELEMENT;
    default:
        return READ_OTHER;
    }
}

/* One member of FieldsV1. */
struct entry {
    struct field_element element;
    size_t index; /* in the document */
    const cJSON *fields;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    int order = field_element_compare(&one->element, &other->element);

    return order ? order : one->index < other->index ? -1 : 1;
}

/* In the order of the set, which is not that of the names. */
static bool read_entries(struct arena *arena, const cJSON *fields, struct entry **ret,
                         size_t *ret_len, bool *ret_member)
{
    struct entry *entries = arena_array(arena, struct entry, json_len(fields) + 1);
    size_t len = 0;

    json_for_each (member, fields) {
        struct entry *entry = &entries[len];

        if (str_equal(member->string, ".")) {
            *ret_member = true;
            continue;
        }
        enum reading reading = read_element(arena, member->string, &entry->element);
        if (reading == READ_WRONG)
            return false;
        if (reading == READ_OTHER)
            continue;
        entry->fields = member;
        entry->index = len++;
    }
    qsort(entries, len, sizeof(*entries), compare_entries);
    *ret = entries;
    *ret_len = len;
    return true;
}

/* Fills set; *ret_member: the field itself belongs to the set above. */
static bool read_set(struct arena *arena, const cJSON *fields, struct field_set *set,
                     bool *ret_member)
{
    struct entry *entries;
    size_t len;

    *ret_member = !json_first(fields);
    if (!cJSON_IsObject(fields) || !read_entries(arena, fields, &entries, &len, ret_member))
        return false;
    for (size_t i = 0; i < len; i++) {
        struct field_set *inner = field_set_create(arena);
        bool is_member = false;

        if (!read_set(arena, entries[i].fields, inner, &is_member))
            return false;
        if (is_member)
            field_set_insert_element(arena, set, &entries[i].element);
        if (!field_set_is_empty(inner))
            *field_set_descend(arena, set, &entries[i].element) = *inner;
    }
    return true;
}

bool field_set_read(struct arena *arena, const cJSON *fields, struct field_set **ret)
{
    struct field_set *set = field_set_create(arena);
    bool is_member;

    if (!read_set(arena, fields, set, &is_member))
        return false;
    *ret = set;
    return true;
}

static const char *element_key(struct arena *arena, const struct field_element *element)
{
    switch (element->kind) {
    case ELEMENT_FIELD:
        return arena_printf(arena, "f:%s", element->name);
    case ELEMENT_KEY:
        return arena_printf(arena, "k:%s", json_text(arena, element->value, NULL));
    case ELEMENT_VALUE:
        return arena_printf(arena, "v:%s", json_text(arena, element->value, NULL));
    case ELEMENT_INDEX:
        return arena_printf(arena, "i:%lld", (long long)element->index);
    }
    return "";
}

/* In the order of the elements, members and what is below them together. */
static cJSON *write_set(struct arena *arena, const struct field_set *set, bool is_member)
{
    cJSON *fields = cJSON_CreateObject();
    size_t m = 0, c = 0;

    if (is_member && (set->members_len || set->children_len))
        json_set(fields, ".", cJSON_CreateObject());
    for (; c < set->children_len; c++) {
        const struct field_child *child = &set->children[c];

        for (; m < set->members_len && field_element_compare(&set->members[m], &child->element) < 0;
             m++)
            members_append(fields, element_key(arena, &set->members[m]), cJSON_CreateObject());

        bool both =
            m < set->members_len && field_element_compare(&set->members[m], &child->element) == 0;
        members_append(fields, element_key(arena, &child->element),
                       write_set(arena, child->set, both));
        m += both;
    }
    for (; m < set->members_len; m++)
        members_append(fields, element_key(arena, &set->members[m]), cJSON_CreateObject());
    return fields;
}

cJSON *field_set_write(struct arena *arena, const struct field_set *set)
{
    return write_set(arena, set, false);
}
