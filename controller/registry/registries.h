/* The registries that may be asked, from --module-registries. Pure; any thread. */
#pragma once

#include "common/api/module_reference.h"
#include "common/base/str.h"

struct module_registry {
    const char *host;   /* as references name it, with its port */
    const char *prefix; /* of paths, without a slash at its ends; "": all */
    const char *url;    /* scheme and host that are asked, without a slash at its end */
    const char *asked;  /* the host in url: credentials are looked up by it */
    bool is_plain;      /* without TLS */
};

struct module_registries {
    struct module_registry *items;
    size_t len;
};

/* Reads entries HOST[:PORT][/PREFIX], http://HOST[:PORT][/PREFIX] and HOST[:PORT][/PREFIX]=URL, where URL is http or https
 * and a host. ERROR_INVALID names the flag and the entry. */
int module_registries_parse(struct arena *arena, const struct str_list *entries,
                            struct module_registries *ret, struct error *err) MUST_CHECK;

/* Returns the registry with the longest prefix that holds the reference, ending at a '/'; NULL: none is listed. */
const struct module_registry *module_registry_find(const struct module_registries *registries,
                                                   const struct module_reference *reference);
