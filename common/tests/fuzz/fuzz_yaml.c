/* yaml_parse_all: what it accepts is JSON that json_parse accepts. */
#include "common/json/yaml.h"
#include "common/tests/fuzz/target.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    const cJSON *documents;
    const cJSON *again;
    size_t text_len;

    json_init();
    if (yaml_parse_all(arena, (const char *)bytes, len, &documents, &err) < 0) {
        if (!err.message[0])
            abort();
        return;
    }

    const char *text = json_text(arena, documents, &text_len);

    /* one level more than a document may have: the array around them */
    if (json_parse(arena, text, text_len, &again, &err) == 0 && !json_equal(documents, again))
        abort();
}
