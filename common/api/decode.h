/* This module reads the members that all five kinds have in common. */
#pragma once

#include "common/json/codec.h"

/*
 * Reads "spec" and "status" of a whole object into the structs of the tables; an absent member
 * becomes all zero. Nothing is written on failure. Errors name the path: "spec.priority: must be
 * …".
 */
int api_decode(struct arena *arena, const cJSON *object, const struct json_struct *spec_table,
               void *ret_spec, const struct json_struct *status_table, void *ret_status,
               struct error *err) MUST_CHECK;
