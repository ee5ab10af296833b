/* JSON that was made of protobuf can be read again. */
#include <stdlib.h>

#include "common/tests/fuzz/target.h"
#include "standalone/api/api.h"
#include "standalone/api/protobuf.h"

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct error err = { 0 };
    cJSON *object = NULL;
    const cJSON *again = NULL;
    size_t text_len;

    json_init();
    if (protobuf_read(arena, (const char *)bytes, len, API_MAX_VALUES, &object, &err) < 0) {
        if (!err.message[0])
            abort();
        return;
    }

    const char *text = json_text(arena, object, &text_len);

    if (json_parse(arena, text, text_len, &again, &err) < 0 || !json_equal(object, again))
        abort();
}
