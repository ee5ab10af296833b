/* Label and field selectors: which objects of a list or watch are wanted. Pure. */
#pragma once

#include "common/kube/object.h"

/* Of one selector: each is looked at for each object. */
#define SELECTOR_MAX_REQUIREMENTS 64

struct label_selector;
/* "a,!b,c=d,e!=f,g in (h,i),j notin (k),l>1,m<2" (labels.Parse). "" selects everything.
 * ERROR_INVALID: *ret_why, in the arena, is the message for a BadRequest. */
int label_selector_parse(struct arena *arena, const char *text, const struct label_selector **ret,
                         const char **ret_why) MUST_CHECK;
bool label_selector_matches(const struct label_selector *selector, const cJSON *object);
bool label_selector_is_empty(const struct label_selector *selector);

struct field_selector;
/* How the message begins where the text is no selector at all. */
#define FIELD_SELECTOR_UNREADABLE "invalid selector: "
/*
 * "metadata.name=a,spec.x!=b", with \ before a comma, an equals sign or another \ (fields.ParseSelector).
 * ERROR_INVALID also for a field that objects of the kind cannot be selected by: metadata.name and
 * metadata.namespace can of all of them, others as the API server has it.
 */
int field_selector_parse(struct arena *arena, const struct kube_kind *kind, const char *text,
                         const struct field_selector **ret, struct error *err) MUST_CHECK;
bool field_selector_matches(const struct field_selector *selector, const cJSON *object);
bool field_selector_is_empty(const struct field_selector *selector);
/* The name that every selected object must have; NULL: any. */
const char *field_selector_name(const struct field_selector *selector);
