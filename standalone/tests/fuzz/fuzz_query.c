/* "/path?query": routes, parameters and selectors of any bytes are read or refused with words. */
#include <stdlib.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "standalone/api/format.h"
#include "standalone/api/query.h"
#include "standalone/api/route.h"
#include "standalone/api/selector.h"

static const struct kube_kind EVENT = {
    .group = "", .version = "v1", .kind = "Event", .plural = "events", .namespaced = true
};
static const char OBJECT[] =
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"labels\":{\"a\":\"1\",\"b\":\"x\"}},"
    "\"source\":{\"component\":\"c\"},\"involvedObject\":{\"kind\":\"K\"},\"type\":\"Normal\"}";

static void expect_words(int r, const char *why)
{
    if (r < 0 && !*why)
        abort();
}

static void select_by(struct arena *arena, const struct query *query, const cJSON *object)
{
    const struct label_selector *labels = NULL;
    const struct field_selector *fields = NULL;
    struct error err = { 0 };
    const char *why = "";

    int r = label_selector_parse(arena, query->label_selector, &labels, &why);
    expect_words(r, why);
    if (r == 0 && label_selector_is_empty(labels) && !label_selector_matches(labels, object))
        abort();
    if (r == 0)
        (void)label_selector_matches(labels, object);
    r = field_selector_parse(arena, &EVENT, query->field_selector, &fields, &err);
    expect_words(r, err.message);
    if (r < 0)
        return;

    const char *name = field_selector_name(fields);

    if (field_selector_matches(fields, object) && name && !str_equal(name, "a"))
        abort();
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const char *text = arena_strndup(arena, (const char *)bytes, len);
    const char *question = strchr(text, '?');
    const char *path = question ? arena_strndup(arena, text, (size_t)(question - text)) : text;
    const cJSON *object = NULL;
    struct error err = { 0 };
    struct query query;

    json_init();
    if (json_parse(arena, OBJECT, strlen(OBJECT), &object, &err) < 0)
        abort();

    const struct route route = route_parse(arena, path);

    if (route.type == ROUTE_OBJECTS && !*route.plural && !strstr(path, "//"))
        abort();
    (void)format_of(arena, path);

    int r = query_parse(arena, question ? question + 1 : "", &query, &err);
    expect_words(r, err.message);
    if (r == 0)
        select_by(arena, &query, object);
}
