#include "standalone/patch/go_text.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/schema/members.h"

/* How Go writes what has members. */
struct style {
    const char *map, *list, *between, *map_end, *list_end, *null;
    bool quoted;
};

static const struct style PLAIN = { "map[", "[", " ", "]", "]", "<nil>", false };
static const struct style SOURCE = {
    "map[string]interface {}{", "[]interface {}{", ", ", "}", "}", "interface {}(nil)", true
};

static bool append_part(struct buf *text, const char *part)
{
    size_t len = strlen(part), cut = str_utf8_cut(part, len, text->max - text->len);

    return buf_append(text, part, cut) && cut == len;
}

static bool append_name(struct buf *text, const struct style *style, const char *name)
{
    const char *quote = style->quoted ? "\"" : "";

    return append_part(text, quote) && append_part(text, name) && append_part(text, quote) &&
           append_part(text, ":");
}

static bool append_value(struct arena *arena, struct buf *text, const struct style *style,
                         const cJSON *value);

static bool append_children(struct arena *arena, struct buf *text, const struct style *style,
                            const cJSON *container)
{
    json_for_each (item, container) {
        if ((cJSON_IsObject(container) && !append_name(text, style, item->string)) ||
            !append_value(arena, text, style, item) ||
            (item->next && !append_part(text, style->between)))
            return false;
    }
    return true;
}

/* false: there is no room for more. */
static bool append_value(struct arena *arena, struct buf *text, const struct style *style,
                         const cJSON *value)
{
    bool map = cJSON_IsObject(value);
    const char *string = json_string(value, NULL), *quote = style->quoted ? "\"" : "";

    if (string)
        return append_part(text, quote) && append_part(text, string) && append_part(text, quote);
    if (cJSON_IsNull(value))
        return append_part(text, style->null);
    if (!map && !cJSON_IsArray(value))
        return append_part(text, json_text(arena, value, NULL));
    return append_part(text, map ? style->map : style->list) &&
           append_children(arena, text, style, value) &&
           append_part(text, map ? style->map_end : style->list_end);
}

/* The caller's. */
static cJSON *sorted(struct arena *arena, const cJSON *json)
{
    size_t len;
    cJSON *copy;

    if (!cJSON_IsObject(json) && !cJSON_IsArray(json))
        return json_copy(json);

    const cJSON **members = members_in_order(arena, json, &len);

    copy = cJSON_IsObject(json) ? cJSON_CreateObject() : cJSON_CreateArray();
    for (size_t i = 0; i < len; i++) {
        if (cJSON_IsObject(json))
            members_append(copy, members[i]->string, sorted(arena, members[i]));
        else
            json_add(copy, sorted(arena, members[i]));
    }
    return copy;
}

/* Go sorts the members of a map. */
static const char *text_in(struct arena *arena, const struct style *style, const cJSON *value)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(GO_TEXT_MAX);

    (void)append_value(arena, &text, style, arena_own(arena, sorted(arena, value), json_free));
    return arena_strdup(arena, buf_string(&text));
}

const char *go_text(struct arena *arena, const cJSON *value)
{
    return text_in(arena, &PLAIN, value);
}

const char *go_source(struct arena *arena, const cJSON *value)
{
    return text_in(arena, &SOURCE, value);
}

const char *sorted_text(struct arena *arena, const cJSON *json)
{
    return json_text(arena, arena_own(arena, sorted(arena, json), json_free), NULL);
}
