/*
 * This module names a place in a JSON tree, for the path in an error message.
 *
 * A place is a chain of structs on the stack of the functions that walk down the tree, so it costs
 * nothing until an error needs it. Each struct borrows its parent and its name. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/base/compiler.h"

struct buf;

struct json_place {
    const struct json_place *parent; /* NULL: the top */
    const char *name; /* key in the parent; "" at the top of an object; NULL: an array element */
    size_t index;     /* of the array element, from 0 */
};

/* Appends the path to buf: "spec.tasks[3].name". Names may be of any length, so the maximum of buf
 * limits the path. Returns false if the path is cut. */
bool json_place_write(const struct json_place *place, struct buf *buf) MUST_CHECK;
