/* One request on its way: what all verbs share. For this folder only. */
#pragma once

#include "common/base/digest.h"
#include "standalone/api/api.h"
#include "standalone/api/format.h"
#include "standalone/api/query.h"
#include "standalone/api/route.h"
#include "standalone/api/turns.h"
#include "standalone/schema/resource.h"
#include "standalone/store/kv.h"

struct collector;
struct api_documents;

struct api {
    struct kv *kv;
    const struct resources *resources;
    const struct clock *clock;
    const char *(*make_uuid)(char ret[static UUID_LEN]); /* of generated names: uuid_random */
    uint32_t collector_retry_ms;                         /* see api_options */
    struct collector *collector;                         /* NULL: not started */
    struct api_documents *documents;                     /* discovery and OpenAPI, made once */
    struct turns turns;                                  /* of those that write the same object */
};

struct api_call {
    struct api *api;
    struct arena *arena;
    const struct api_request *request;
    struct api_reply *reply;
    struct route route;
    struct query query;
    struct format format;
    const struct resource *resource; /* of ROUTE_OBJECTS */
    size_t warning_count;
    /* Of what is created in a namespace: the namespace, as it was when it was found to be there and to
     * stay. key NULL: none is needed. */
    struct kv_guard place;
};

/*
 * What a verb returns: 0, the reply is complete; -1, so it is, and it is a refusal. Everything that
 * follows makes the reply, a Status of meta/v1 in the API server's words, and returns -1.
 */
int call_fail(struct api_call *call, int code, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* "<plural>.<group> "<name>" …": with details. */
int call_fail_named(struct api_call *call, int code, const char *reason, const char *name,
                    const char *format, ...) PRINTF_LIKE(5, 6);
/* The details name a kind, and the message is whole. */
int call_fail_kind(struct api_call *call, int code, const char *reason,
                   const struct kube_kind *kind, const char *name, const char *message);
/* With empty details: what the API server refuses before it looks for a resource. */
int call_fail_path(struct api_call *call, int code);
/* There is nothing at this path: a Status below a group that is built in, else "404 page not found". */
int call_fail_no_path(struct api_call *call);
int call_fail_not_found(struct api_call *call, const char *name);
/* The name that the server made is taken; state: what is said first of who has it, or "". */
int call_fail_generated(struct api_call *call, const char *name, const char *state);
/* Its namespace is going. */
int call_fail_terminating(struct api_call *call, const char *name);
int call_fail_conflict(struct api_call *call, const char *name, const char *why);
int call_fail_changed(struct api_call *call,
                      const char *name); /* "the object has been modified…" */
int call_fail_status(struct api_call *call, const cJSON *status);
/* What the store says where it does not mean something of its own. */
int call_fail_store(struct api_call *call, const struct error *err);
/* The same of what only reads: 500 when the store cannot, as there; 503 is for writes that were not made. */
int call_fail_read(struct api_call *call, const struct error *err);
int call_fail_expired(struct api_call *call, const char *format, ...) PRINTF_LIKE(2, 3);
int call_fail_too_many(struct api_call *call); /* 429 */
/* A Status that refuses, without kind and apiVersion; reason NULL: none. */
cJSON *call_status(struct arena *arena, int code, const char *reason, const char *message);
/* The version is of the future. */
cJSON *call_too_large_version(struct arena *arena, uint64_t wanted, uint64_t current);
int call_fail_too_large_version(struct api_call *call, uint64_t wanted, uint64_t current);

/* "tasks.propeller.example" or "secrets". */
const char *call_resource_name(const struct api_call *call);

/* Whether an object may have the name of the path at all: looked at where it is looked for. */
int call_check_name(struct api_call *call);

/* A header Warning; the same text once. */
void call_warn(struct api_call *call, const char *text);

/* A document as it is, or as YAML, if Accept says so. */
int call_reply(struct api_call *call, int code, const cJSON *document);
int call_reply_text(struct api_call *call, int code, const char *content_type, const char *body,
                    size_t len);

/* 415 if the body is in a format that is not read. */
int call_check_type(struct api_call *call);
/* The tree of the body, JSON or YAML; owned by the arena and free to change. */
int call_body(struct api_call *call, cJSON **ret);
/* As the decoder of Go says it of a body, not an object, whose kind it wants to know. */
const char *call_no_object(struct api_call *call, const cJSON *body);

/* verbs */
int call_get(struct api_call *call);
int call_list(struct api_call *call);
int call_watch(struct api_call *call);
int call_create(struct api_call *call);
int call_update(struct api_call *call);
int call_patch(struct api_call *call);
int call_delete(struct api_call *call);
int call_delete_collection(struct api_call *call);
int call_review(struct api_call *call);   /* selfsubject…reviews; 1: it is none of them */
int call_document(struct api_call *call); /* everything that is no object */
