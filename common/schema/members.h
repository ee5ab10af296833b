/* Objects and lists as clients send them: a hundred thousand entries are found without looking at each. */
#pragma once

#include "common/json/json.h"

struct map;

/* The members of one object as they are now, by name. A value; its memory is the arena's. */
struct members {
    const cJSON *object;
    struct map *names; /* NULL: so few that they are looked at */
};

/* Anything that is no object has none. */
struct members members_of(struct arena *arena, const cJSON *object);
/* NULL: not there. Not to be asked for what came into the object or has left it since. */
cJSON *members_get(const struct members *members, const char *name);

/* Takes value. The name must be new to the object, which is not looked at. */
void members_append(cJSON *object, const char *name, cJSON *value);
/* Takes value, which gets the place and the name of member. Frees member. */
void members_replace(cJSON *object, cJSON *member, cJSON *value);

/* The members, or the items, *ret_len of them: members ordered by name, items as they are. In the arena. */
const cJSON **members_in_order(struct arena *arena, const cJSON *container, size_t *ret_len);

/* A text that equal values share and others do not: numbers by value, objects without regard to order.
 * NULL is a value of its own. In the arena. */
const char *value_key(struct arena *arena, const cJSON *value);
