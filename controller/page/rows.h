/*
 * This module makes what the page shows of an object: a row of a list, and the object in detail.
 *
 * Rows are made of cached objects. Details are whole objects without modules, values of env, keys, annotations and pod
 * templates, which may be secret. Texts may come from devices; the page shows them as text only. Pure; any thread; nothing fails.
 */
#pragma once

#include "common/json/json.h"
#include "common/kube/object.h"

/* The lists of the page, by their names in its addresses. */
struct page_list {
    const char *name;
    const struct kube_kind *kind;
};
#define PAGE_LISTS 6
extern const struct page_list PAGE_LIST[PAGE_LISTS];
/* PAGE_LISTS: there is none of this name. */
size_t page_list_find(const char *name);

/* Sets the members of the row: ns, name, phase, reason, created, and those of the kind. */
void page_row(const struct kube_kind *kind, const cJSON *object, cJSON *row);

#define PAGE_MAX_RESULT 65536 /* bytes of a result that are shown */
/* Removes and cuts in place. */
void page_clean(struct arena *arena, cJSON *object);
/* {"phase","reason","message","meaning","remedy"}: why it is as it is. */
void page_explain(const struct kube_kind *kind, const cJSON *object, cJSON *ret);
