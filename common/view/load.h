/* Load of Proplets and Tasks, and what happened to an object, as rows. Pure: any thread, and nothing fails. */
#pragma once

#include "common/json/json.h"
#include "common/kube/object.h"

/* A row for each object, Proplets or Tasks that are active; sort_by: "name", "cpu", "memory" or "active". cpu is a
 * percentage of one core, memory in MiB; they are absent without a sample. */
void load_rows(struct arena *arena, const struct kube_kind *kind, const cJSON *objects,
               const char *sort_by, cJSON *rows);
