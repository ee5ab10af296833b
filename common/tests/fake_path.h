/* Paths of the Kubernetes API taken apart: what common/kube/path.h builds. For the fake. */
#pragma once

#include "common/kube/object.h"

struct fake_path {
    const char *scope; /* "/apis/<group>/<version>/<plural>|": begins the keys of all its objects */
    const char *plural; /* for messages */
    const char *ns;     /* "": all, or cluster-scoped */
    const char *name;   /* "": the collection */
    bool is_status;
    const char *query; /* without "?" */
};
bool fake_path_parse(struct arena *arena, const char *path, struct fake_path *ret);

/* "<scope><ns>/<name>"; of a collection what the keys of its objects begin with. */
const char *fake_path_key(struct arena *arena, const struct fake_path *path);
/* The decoded value; "": not there. */
const char *fake_path_query(struct arena *arena, const struct fake_path *path, const char *key);
/* "a=b,c": all labels with their values, or there at all. An empty selector selects all. */
bool fake_path_selects(struct arena *arena, const char *selector, const cJSON *object);

/* The other direction. */
const char *fake_path_of(struct arena *arena, const struct kube_kind *kind,
                         const struct kube_name *name);
const char *fake_path_object_key(struct arena *arena, const struct kube_kind *kind,
                                 const struct kube_name *name);
