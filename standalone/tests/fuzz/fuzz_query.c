/* "/path?query": paths, parameters, selectors and media types of any bytes are read or refused with words. */
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "standalone/api/request.h"
#include "standalone/api/selection.h"

static const struct resource EVENTS = { .kind = { .group = "",
                                                  .version = "v1",
                                                  .kind = "Event",
                                                  .plural = "events",
                                                  .namespaced = true } };
static const char OBJECT[] =
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\",\"labels\":{\"a\":\"1\",\"b\":\"x\"}},"
    "\"source\":{\"component\":\"c\"},\"involvedObject\":{\"kind\":\"K\"},\"type\":\"Normal\"}";

static void select_by(struct arena *arena, const struct query *query, const cJSON *object)
{
    struct selection selection;
    struct error err = { 0 };

    if (selection_parse(arena, &EVENTS, query->label_selector, query->field_selector, &selection,
                        &err) < 0) {
        if (!err.message[0])
            abort();
    } else if (!selection_matches(&selection, object) && selection_is_empty(&selection)) {
        abort();
    }
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
    if (query_parse(arena, question ? question + 1 : "", &query, &err) == 0)
        select_by(arena, &query, object);
    else if (!err.message[0])
        abort();
}
