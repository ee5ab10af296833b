/* Values as Go prints them, in messages and in what is stored as text. All are owned by the arena. */
#pragma once

#include "common/json/json.h"

/* For messages: cut when they are longer. */
#define GO_TEXT_MAX 1024
const char *go_text(struct arena *arena, const cJSON *value);   /* %v: "map[a:[1 2]]" */
const char *go_source(struct arena *arena, const cJSON *value); /* %#v */
/* Compact JSON with the members of every object in the order of their names. */
const char *sorted_text(struct arena *arena, const cJSON *json);
