/* A manifest of the Go operator's newer group, propeller.propeller.absmach.eu/v1, as one of this operator. Pure. */
#pragma once

#include "common/json/json.h"

/* The schemas of the kinds, each read once. A value; zero is a good begin. */
#define CONVERT_MAX_KINDS 8
struct convert_schemas {
    struct arena *arena; /* of the schemas */
    const struct schema *of[CONVERT_MAX_KINDS];
};

enum convert_result {
    CONVERT_UNCHANGED, /* an object of another group */
    CONVERT_DONE,
    CONVERT_OMITTED, /* an object that must not be created: another one makes it, it is being deleted, or it has ended */
};

/*
 * Rewrites object, which lives in the arena or longer. Fields that the API server sets are removed, so that the object
 * can be created. notes is an array that gets {"field", "text", "lost"} for each field that this operator cannot express
 * (lost), or that a user should know of. Returns an enum convert_result; ERROR_INVALID names the field. Notes and errors
 * have names of fields and objects, and no values.
 */
int convert_manifest(struct convert_schemas *schemas, struct arena *arena, cJSON *object,
                     cJSON *notes, struct error *err) MUST_CHECK;
