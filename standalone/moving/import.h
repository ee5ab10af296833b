/* Objects of a file, made on a server: each goes through the admission of every other write. */
#pragma once

#include <stdio.h>

#include "common/kube/transport.h"
#include "standalone/moving/manifest.h"
#include "standalone/schema/resource.h"

/*
 * Takes the output of export_write, and of `kubectl get -o yaml` or -o json of any cluster: members
 * that belong to the server are dropped, children of controllers and the like are omitted
 * (manifest.h).
 *
 * - An object that is not there is created; a namespace that is missing, too.
 * - An object that is there and the same stays: an import that was interrupted, or in which
 *   something was refused, is simply run again. A different one is refused; nothing is ever
 *   overwritten.
 * - A finished object is finished: it is created with its status in one write, so that no controller
 *   sees it without. Any other with a status begins again.
 * - A field that the kind does not know refuses the object; nothing is dropped in silence.
 */
struct import_options {
    http_roundtrip_fn *roundtrip; /* to the API */
    void *ctx;
    const struct resources *resources;
    const char *source; /* of messages: the file's name */
    /* Told of each object that is refused: "FILE: document 2, line 7: Task default/a: …". */
    void (*refused)(void *ctx, const char *text);
    void *refused_ctx;
};

/* Refused objects are counted, and no error. An error ends it where it is; *ret is set all the same:
 * the file cannot be read further, or the server does not answer or has no room. */
int import_read(FILE *file, const struct import_options *options, struct manifest_counts *ret,
                struct error *err) MUST_CHECK;
