/* json_parse: what it accepts is printed, accepted again, and equal. */
#include "common/json/json.h"
#include "common/tests/fuzz/target.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const cJSON *json;
    const cJSON *again;
    size_t text_len;

    json_init();
    if (json_parse(arena, (const char *)bytes, len, &json, &err) < 0) {
        REQUIRE(err.code == ERROR_INVALID && err.message[0]);
        return 0;
    }

    const char *text = json_text(arena, json, &text_len);

    REQUIRE(json_parse(arena, text, text_len, &again, &err) == 0);
    REQUIRE(json_equal(json, again));
    REQUIRE(strcmp(text, json_text(arena, again, NULL)) == 0);
    return 0;
}
