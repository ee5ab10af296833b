#include "controller/page/files.h"

#include "common/base/compiler.h"
#include "common/base/str.h"
#include "common/schema/embedded.h"

/* One line for each file: its symbol, its address, its place in the repository and its type. */
#define EACH_FILE(FILE)                                                                            \
    FILE(page_html, "/", "controller/page/client/index.html", "text/html; charset=utf-8")          \
    FILE(page_css, "/page.css", "controller/page/client/page.css", "text/css; charset=utf-8")      \
    FILE(page_js, "/page.js", "controller/page/client/page.js", "text/javascript; charset=utf-8")  \
    FILE(page_views_js, "/views.js", "controller/page/client/views.js",                            \
         "text/javascript; charset=utf-8")                                                         \
    FILE(page_preact, "/vendor/preact.js", "controller/page/vendor/preact.js",                     \
         "text/javascript; charset=utf-8")                                                         \
    FILE(page_uplot, "/vendor/uplot.js", "controller/page/vendor/uplot.js",                        \
         "text/javascript; charset=utf-8")                                                         \
    FILE(page_uplot_css, "/vendor/uplot.css", "controller/page/vendor/uplot.css",                  \
         "text/css; charset=utf-8")

#define EMBED_FILE(symbol, path, place, type) EMBED(symbol, place);
EACH_FILE(EMBED_FILE)

#define ROW(symbol, path, place, type) { path, { place, symbol, symbol##_end }, type },
static const struct {
    const char *path;
    struct embedded file;
    const char *type;
} FILES[] = { EACH_FILE(ROW) };

bool page_file_find(const char *path, struct page_file *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        if (!str_equal(FILES[i].path, path))
            continue;
        *ret = (struct page_file){ FILES[i].type, FILES[i].file.text,
                                   (size_t)(FILES[i].file.end - FILES[i].file.text) };
        return true;
    }
    return false;
}
