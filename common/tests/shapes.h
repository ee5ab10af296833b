/* Small objects for tests of stores: a name, a version, and values for two indexes. */
#pragma once

#include "common/base/arena.h"
#include "common/runtime/store.h"
#include "common/tests/suite.h"

#define NAMES 24
#define COLOURS 4 /* one of them, or none */
#define TAGS 3    /* any of them, the first twice */

struct shape {
    int name;
    int64_t version;
    int colour;    /* COLOURS: none */
    unsigned tags; /* bits */
    int life;      /* of the uid: a name may be deleted and made again */
};

struct kube_object *make_object(const struct shape *shape);
struct kube_object *make_version(int name, int64_t version);
struct kube_name name_of(int name); /* "even/o04": numbers are in name order within a namespace */
const char *version_text(struct arena *arena, int64_t version);

struct store *make_store(void); /* with indexes "colour" and "tags" */
bool put_version(struct store *store, int name, int64_t version);
bool add_version(struct store *store, int name, int64_t version); /* to the set */
store_gone_fn ignore_gone;
