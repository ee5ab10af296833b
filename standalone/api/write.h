/* One object on its way into the store: decoded, defaulted, admitted, validated, written. For this
 * folder only. */
#pragma once

#include "standalone/api/call.h"

/*
 *   body or patched object
 *     -> write_decode    unknown fields, metadata, defaults of the schema
 *     -> write_admit     field managers, what admission sets, what is the server's, validation
 *     -> write_store     or a deletion, when the last finalizer has gone; nothing when nothing changed
 */
struct write;
/* Makes write->object from write->live and the request. */
typedef int change_fn(struct write *write);

struct write {
    struct api_call *call;
    change_fn *change;           /* of an update or patch */
    const char *subresource;     /* "" or "status" */
    const cJSON *live;           /* NULL: it is created */
    uint64_t revision;           /* of live in the store */
    const cJSON *sent;           /* of an update: the object as it was decoded */
    const struct resource *said; /* what the body says it is; of this kind is what is decoded */
    const char *said_kind, *said_version; /* its words for that; the version without its group */
    cJSON *object;
    bool from_tree;    /* a strategic patch: Go makes the struct of a tree, not of a text */
    bool managed;      /* managedFields are set: server-side apply */
    bool or_changed;   /* what is created may have come meanwhile: it is changed then */
    size_t more_names; /* that may be generated, if this one is taken */
    const char
        *tried_version; /* that was sent with a creation; it is shown when that is only tried */
};

/* All: 0, or -1 after a refusal. */

/* object must be a tree of its own. patched: what a strict refusal is worded for. */
int write_decode(struct write *write, cJSON *object, bool patched);
int write_admit(struct write *write);
/* 1: it has changed meanwhile, nothing was written. Else the reply is made, with this code. */
int write_store(struct write *write, int code);

/* The namespace must be there, and must not be going: now, and when the object is created. */
int write_check_namespace(struct api_call *call, const char *name);
/* The object's name and namespace: those of the path, which fill in what is left out. */
int write_check_names(struct write *write);

/* Creates write->object; code 201. 1: as write_store, of what may be changed instead. */
int write_create(struct write *write);
