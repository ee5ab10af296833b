/* json_parse: what it accepts is printed, accepted again, and equal. */
#include "common/json/json.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct json_reading own = { .own = true };
    struct error err = { 0 };
    const cJSON *json;
    const cJSON *again;
    size_t text_len;

    json_init();
    if (json_parse(arena, (const char *)bytes, len, &json, &err) < 0) {
        REQUIRE((err.code == ERROR_INVALID || err.code == ERROR_TOO_LARGE) && err.message[0]);
        return;
    }

    heap_pause();
    const char *text = json_text(arena, json, &text_len);

    REQUIRE(json_parse_with(arena, text, text_len, &own, &again, &err) == 0);
    REQUIRE(json_equal(json, again));
    REQUIRE(strcmp(text, json_text(arena, again, NULL)) == 0);
}
