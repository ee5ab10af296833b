#include "standalone/schema/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "common/schema/embedded.h"

/* A sequence of entries: name, tab, length, newline, the document, NUL. */
EMBED(bundle_bytes, "build/documents");
static const struct embedded BUNDLE = { "build/documents", bundle_bytes, bundle_bytes_end };

const char *bundle_find(const char *name, size_t *ret_len)
{
    size_t name_len = strlen(name);

    for (const char *at = BUNDLE.text; at < BUNDLE.end;) {
        const char *tab = memchr(at, '\t', (size_t)(BUNDLE.end - at));
        char *line_end;
        size_t len = strtoul(tab, &line_end, 10);

        if ((size_t)(tab - at) == name_len && memcmp(at, name, name_len) == 0) {
            *ret_len = len;
            return line_end + 1;
        }
        at = line_end + 1 + len + 1;
    }
    return NULL;
}
