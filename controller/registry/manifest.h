/* The module that a manifest or an index of a registry leads to. Pure; any thread. */
#pragma once

#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/json/json.h"

#define MODULE_MANIFEST_MAX ((size_t)4 << 20) /* bytes */

/* Value of the header Accept for manifests. */
#define MODULE_MANIFEST_TYPES                                                                      \
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, "        \
    "application/vnd.docker.distribution.manifest.v2+json, "                                       \
    "application/vnd.docker.distribution.manifest.list.v2+json"

/* A descriptor. */
struct module_choice {
    bool is_index; /* the document is an index, and this is one of its manifests; else a layer */
    const char *digest; /* "sha256:<hex>" */
    int64_t bytes;      /* from 0 */
};

/*
 * Chooses the layer of a manifest or the entry of an index. type is the Content-Type of the reply, which counts if the
 * document names no mediaType; NULL: none. The document must have at most MODULE_MANIFEST_MAX bytes.
 *
 * ERROR_INVALID: the message, which follows the name of the module, says what the document has instead. It quotes media
 * types and platforms of the document.
 */
int module_manifest_choose(struct arena *arena, const char *type, const char *text, size_t len,
                           struct module_choice *ret, struct error *err) MUST_CHECK;

/* Parts for other manifests: of signatures. */

/* Parses the document with a limit of values. ERROR_INVALID, ERROR_TOO_LARGE as json_parse. */
int module_manifest_parse(struct arena *arena, const char *text, size_t len, const cJSON **ret,
                          struct error *err) MUST_CHECK;
/* Reads digest and size of a descriptor. false: it has no valid ones. */
bool module_descriptor_read(const cJSON *descriptor, struct module_choice *ret);
