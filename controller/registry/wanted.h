/* This module reads the wish of a Task: which manifest it means, and which registry has it. Pure. */
#pragma once

#include "controller/registry/fetch.h"

struct wanted {
    struct fetch_order order;
    struct module_reference reference;
    const struct module_registry *registry;
    const char *key; /* two wishes with one key are one pull */
};

/* Texts are those of the wish, or in the arena. Returns REASON_NONE, or why the wish can never be fulfilled, with a
 * message. */
enum reason wanted_read(struct arena *arena, const struct module_registries *registries,
                        const struct wasm_module_wish *wish, struct wanted *ret,
                        const char **ret_message);
