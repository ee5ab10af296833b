/* The sender of a request, and the verbs that its role allows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The roles of `kubectl create clusterrolebinding --clusterrole=admin|edit|view`, without namespaces:
 *
 *   ROLE_VIEW   get, list and watch, Secrets excepted
 *   ROLE_EDIT   everything with every object, but for namespaces: those only get, list, watch
 *   ROLE_ADMIN  everything
 */
enum role { ROLE_NONE, ROLE_VIEW, ROLE_EDIT, ROLE_ADMIN, ROLES };

struct user {
    const char *name;
    enum role role;
};

#define ROLE_GROUP "propeller:"        /* the group of a role: this and its name */
extern const char *const ROLE_NAMES[]; /* "none", "view", "edit", "admin" */
bool role_parse(const char *name, enum role *ret);
/* verb: as in RBAC ("get", "list", "watch", "create", "update", "patch", "delete",
 * "deletecollection"); group "" for the core group. Pure. */
bool user_may(const struct user *user, const char *verb, const char *group, const char *plural);
