#include "controller/registry/registries.h"

#include <string.h>

#define HTTP "http://"
#define HTTPS "https://"

static int refuse(const char *entry, struct error *err)
{
    return error_set(err, ERROR_INVALID,
                     "--module-registries: '%.100s' is not HOST[:PORT][/PREFIX], "
                     "http://HOST:PORT or NAME=URL",
                     entry);
}

/* Reads HOST[:PORT][/PREFIX]: the grammar is that of a reference to any repository of it. */
static bool read_place(struct arena *arena, const char *text, struct module_reference *ret)
{
    const char *any = arena_printf(arena, "%s/x", text);
    size_t len;

    if (module_reference_parse(arena, any, ret, NULL) < 0)
        return false;
    len = strlen(ret->path) - 1; /* of the prefix and its slash */
    ret->path = arena_strndup(arena, ret->path, len ? len - 1 : 0);
    return true;
}

static int read_entry(struct arena *arena, const char *entry, struct module_registry *ret,
                      struct error *err)
{
    const char *equals = strchr(entry, '=');
    const char *url = equals ? equals + 1 : entry;
    bool is_plain = str_has_prefix(url, HTTP);
    const char *place = is_plain                               ? url + strlen(HTTP)
                        : str_has_prefix(url, HTTPS) && equals ? url + strlen(HTTPS)
                                                               : url;
    struct module_reference asked, named;

    if (!read_place(arena, place, &asked))
        return refuse(entry, err);
    named = asked;
    if (equals &&
        (place == url || *asked.path ||
         !read_place(arena, arena_strndup(arena, entry, (size_t)(equals - entry)), &named)))
        return refuse(entry, err);
    *ret = (struct module_registry){
        .host = named.host,
        .prefix = named.path,
        .url = arena_printf(arena, "%s%s", is_plain ? HTTP : HTTPS, asked.host),
        .asked = asked.host,
        .is_plain = is_plain,
    };
    return 0;
}

int module_registries_parse(struct arena *arena, const struct str_list *entries,
                            struct module_registries *ret, struct error *err)
{
    struct module_registry *items = arena_array(arena, struct module_registry, entries->len);

    for (size_t i = 0; i < entries->len; i++) {
        int r = read_entry(arena, entries->items[i], &items[i], err);

        if (r < 0)
            return r;
    }
    *ret = (struct module_registries){ items, entries->len };
    return 0;
}

static bool holds(const struct module_registry *registry, const struct module_reference *reference)
{
    size_t len = strlen(registry->prefix);

    if (!str_equal(registry->host, reference->host))
        return false;
    return !len || (str_has_prefix(reference->path, registry->prefix) &&
                    (reference->path[len] == '/' || !reference->path[len]));
}

const struct module_registry *module_registry_find(const struct module_registries *registries,
                                                   const struct module_reference *reference)
{
    const struct module_registry *best = NULL;

    for (size_t i = 0; i < registries->len; i++) {
        const struct module_registry *registry = &registries->items[i];

        if (holds(registry, reference) &&
            (!best || strlen(registry->prefix) > strlen(best->prefix)))
            best = registry;
    }
    return best;
}
