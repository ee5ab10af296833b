#include "controller/registry/wanted.h"

static const char *key_of(struct arena *arena, const struct wanted *wanted)
{
    const struct fetch_order *order = &wanted->order;
    const char *key = arena_printf(arena, "%s@%s", wanted->reference.repository,
                                   order->manifest ? order->manifest : wanted->reference.tag);

    if (!order->secrets.len)
        return key;
    key = arena_printf(arena, "%s %s", key, order->ns);
    for (size_t i = 0; i < order->secrets.len; i++)
        key = arena_printf(arena, "%s %s", key, order->secrets.items[i]);
    return key;
}

enum reason wanted_read(struct arena *arena, const struct module_registries *registries,
                        const struct wasm_module_wish *wish, struct wanted *ret,
                        const char **ret_message)
{
    struct wanted wanted = { .order = { .reference = wish->reference } };
    struct error err = { 0 };

    if (module_reference_parse(arena, wish->reference, &wanted.reference, &err) < 0) {
        *ret_message = arena_printf(arena, "spec.imageUrl %s", err.message);
        return REASON_MODULE_INVALID;
    }
    wanted.registry = module_registry_find(registries, &wanted.reference);
    if (!wanted.registry) {
        *ret_message = arena_printf(arena, "'%s' is not listed in --module-registries",
                                    wanted.reference.repository);
        return REASON_REGISTRY_NOT_ALLOWED;
    }
    wanted.order.manifest = wanted.reference.digest        ? wanted.reference.digest
                            : str_is_empty(wish->manifest) ? NULL
                                                           : wish->manifest;
    wanted.order.ns = wish->task.ns;
    wanted.order.secrets = wish->secrets;
    wanted.key = key_of(arena, &wanted);
    *ret = wanted;
    return REASON_NONE;
}
