/* The pod template of a Proplet of type k8s. Pure. */
#pragma once

#include "common/api/proplet.h"

struct pod_template_options {
    const cJSON *proplet; /* the whole object */
    const struct proplet_spec *spec;
    int64_t liveliness_s;
    const char *kbs_uri;     /* if podTemplate names none */
    const char *key_version; /* see deployment_observed */
    const cJSON *labels;     /* further ones, such as the selector of an object that is there */
};

/*
 * One container that passes Pod Security "restricted", with the environment that every version of
 * the device reads (both sets of names, whole seconds), then spec.k8s.podTemplate. Not owned by the
 * arena: it goes into a larger tree.
 */
cJSON *pod_template(struct arena *arena, const struct pod_template_options *options);

/*
 * Brings a fragment into an object: objects member by member, arrays whose items have a name item by
 * item by that name, other arrays by appending, everything else is replaced.
 */
void pod_template_merge(cJSON *into, const cJSON *fragment);

/*
 * Returns the first member of a fragment that the stored object does not have, as
 * ".spec.tolerationz" or ".spec.containers[proplet].imagePulPolicy"; NULL: all is there. An API
 * server omits members that its types do not know (KEP-2885), and reports it nowhere that users of
 * the Proplet would look. A value as good as absent (null, false, 0, empty) is not missed.
 */
const char *pod_template_left_out(struct arena *arena, const cJSON *fragment, const cJSON *made);
