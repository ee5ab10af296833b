/* The reading of an HTTP request: its path, its query and the media types of its headers. Pure. */
#pragma once

#include "common/schema/field_errors.h"

enum route_type {
    ROUTE_UNKNOWN,
    ROUTE_OBJECTS,  /* a collection, an object, or a subresource of it */
    ROUTE_DOCUMENT, /* any other path: discovery and OpenAPI, if there is such a document */
    ROUTE_VERSION,
    ROUTE_HEALTH, /* /healthz, /livez, /readyz, and what is below them */
};

/* Strings are in the arena, percent-decoded, "" where the path has none. */
struct route {
    enum route_type type;
    const char *group, *version;
    const char *ns;
    const char *plural;
    const char *name;
    const char *subresource;
    bool deeper;          /* the path goes on behind the subresource */
    const char *document; /* the whole path, "/apis/g.io/v1" */
};

/* "/api/v1/namespaces/x" is the namespace, "/api/v1/namespaces/x/secrets" is a collection in it. */
struct route route_parse(struct arena *arena, const char *path);

/* ListOptions, CreateOptions, PatchOptions, DeleteOptions. Strings are decoded, in the arena; "": there is none. */
struct query {
    bool watch;
    bool allow_bookmarks;
    bool send_initial_events, send_initial_events_set;
    const char *label_selector, *field_selector;
    const char *resource_version, *resource_version_match;
    int64_t limit;
    const char *continue_token;
    int64_t timeout_s;   /* 0: not set */
    const char *dry_run; /* NULL: not set */
    const char *field_manager;
    const char *field_validation;
    bool force, force_set;
    bool keep_status; /* of an object that is created, with its status: for import */
    const char *propagation_policy;
    const char *include_object;
    const char *uid; /* a precondition of a deletion, as resource_version is */
};

/* Unknown parameters are ignored; of a parameter that comes twice the first value counts. ERROR_INVALID: a number
 * cannot be read; *ret has the parameters before it. */
int query_parse(struct arena *arena, const char *text, struct query *ret,
                struct error *err) MUST_CHECK;
enum write_type { WRITE_OBJECT, WRITE_PATCH, WRITE_APPLY };
/* Adds an error for each parameter that such a write may not have. */
void query_check_write(const struct query *query, enum write_type type,
                       struct field_errors *errors);
void query_check_dry_run(const char *value, struct field_errors *errors);

/* The form that Accept asks for. */
enum format_type {
    FORMAT_OBJECT,
    FORMAT_TABLE,
    FORMAT_METADATA,   /* PartialObjectMetadata(List) */
    FORMAT_AGGREGATED, /* APIGroupDiscoveryList */
    FORMAT_PROTOBUF,   /* of OpenAPI v2 */
};
struct format {
    enum format_type type;
    const char *version; /* v=; NULL: none */
};

/* The first of the list that can be answered; JSON without a header, or with none of them. */
struct format format_of(struct arena *arena, const char *accept);

/* Whether the header Content-Type names this type, with any parameters. */
bool media_type_is(const char *header, const char *type);
