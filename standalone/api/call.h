/* One request on its way: the state that all verbs share. For this folder only. */
#pragma once

#include "common/base/digest.h"
#include "standalone/api/api.h"
#include "standalone/api/request.h"
#include "standalone/api/turns.h"
#include "standalone/schema/table.h"
#include "standalone/store/kv.h"

struct collector;
struct selection;

struct api {
    struct kv *kv;
    const struct resources *resources;
    const struct clock *clock;
    const struct admission_policy *policy;
    uint32_t collector_retry_ms; /* see api_options */
    struct collector *collector; /* NULL: not started */
    struct turns turns;          /* of requests that write the same object */
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
};

/*
 * A verb returns 0 when the reply is complete, -1 when the reply is a refusal. Everything that follows makes the
 * reply, a Status of meta/v1, and returns -1.
 */
int call_fail(struct api_call *call, int code, const char *reason, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* With details. The message begins with `<plural>.<group> "<name>" `; name "": without the name. */
int call_fail_named(struct api_call *call, int code, const char *reason, const char *name,
                    const char *format, ...) PRINTF_LIKE(5, 6);
/* 404 or 405, with empty details: it is the path or the method that is refused. */
int call_fail_path(struct api_call *call, int code);
int call_fail_not_found(struct api_call *call, const char *name);
int call_fail_terminating(struct api_call *call, const char *name); /* its namespace */
int call_fail_changed(struct api_call *call, const char *name);     /* 409 */
int call_fail_status(struct api_call *call, const cJSON *status);
int call_fail_too_many(struct api_call *call); /* 429 */
/* 504: the version is of the future; client-go lists again when it finds the cause. */
int call_fail_too_large_version(struct api_call *call, uint64_t wanted);
/* An error of the store, or one that says what is wrong with a request: 400, 413, 422, 500, 503, 504. 503 is for writes
 * that were not made: a read that fails gets 500. */
int call_fail_error(struct api_call *call, const struct error *err);

/* 422 if there are errors; else 0. kind: "CreateOptions". */
int call_check_options(struct api_call *call, const struct field_errors *errors, const char *kind);

/* A Status that refuses; reason NULL: none. */
cJSON *call_status(struct arena *arena, int code, const char *reason, const char *message);
/* A Status that has no result yet. */
cJSON *call_empty_status(struct arena *arena);

/* A header Warning; the same text once. */
void call_warn(struct api_call *call, const char *text);
int call_reply(struct api_call *call, int code, const cJSON *document);
int call_reply_text(struct api_call *call, int code, const char *content_type, const char *body,
                    size_t len);

bool call_is_read(const struct api_call *call);

/* 504 if the client has gone: the rest is of no use. */
int call_check_gone(struct api_call *call);

/* The tree of the body, JSON, YAML or protobuf; owned by the arena and free to change. */
int call_body(struct api_call *call, cJSON **ret);
/* ?resourceVersion=, 0 without. */
int call_read_version(struct api_call *call, uint64_t *ret);
/* The selection of a list, a watch or the deletion of a collection. */
int call_select(struct api_call *call, struct selection *ret);

/* Objects as the client asked for them: as they are, as a Table, or their metadata. */

/* The reply with one object. */
int present_object(struct api_call *call, int code, cJSON *object);
/* The form of a Table that the query asks for. */
struct table_options present_options(const struct api_call *call);
/* A tree in the form that was asked for, a Table of one row or metadata alone; in the arena. */
cJSON *present_tree(struct arena *arena, const struct format *format,
                    const struct resource *resource, const struct table_options *options,
                    cJSON *tree);

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
