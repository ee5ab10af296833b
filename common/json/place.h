/* A place in a tree, for the path in an error: a chain on the stack, written only if there is an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct buf;

struct json_place {
    const struct json_place *parent; /* NULL: the top */
    const char *name; /* NULL: element `index` of the parent; "" at the top of an object */
    size_t index;
};

/* Appends "spec.tasks[3].name". Names come from outside, so the limit of buf is that of the path;
 * false: it is cut. */
bool json_place_write(const struct json_place *place, struct buf *buf) MUST_CHECK;
