#include "standalone/api/user.h"

#include <string.h>

#include "common/base/str.h"

const char *const ROLE_NAMES[ROLES + 1] = { "none", "view", "edit", "admin", NULL };

static const char *const READS[] = { "get", "list", "watch", NULL };
static const char *const WRITES[] = { "create", "update",           "patch",
                                      "delete", "deletecollection", NULL };

bool role_parse(const char *name, enum role *ret)
{
    for (int i = ROLE_VIEW; i < ROLES; i++) {
        if (str_equal(name, ROLE_NAMES[i])) {
            *ret = (enum role)i;
            return true;
        }
    }
    return false;
}

/* Everybody who is known may ask what he may, and who he is. */
static bool is_review(const char *verb, const char *group, const char *plural)
{
    return str_equal(verb, "create") &&
           (str_equal(group, "authorization.k8s.io") ||
            str_equal(group, "authentication.k8s.io")) &&
           str_has_prefix(plural, "selfsubject");
}

/* "*", as in a question about all verbs or all resources, is true for an admin alone: to the others
 * something is denied. */
bool user_may(const struct user *user, const char *verb, const char *group, const char *plural)
{
    bool reads = str_is_one_of(verb, READS);

    if (user->role == ROLE_ADMIN || is_review(verb, group, plural))
        return true;
    if (user->role == ROLE_NONE || str_equal(plural, "*") || str_equal(group, "*") ||
        (!reads && !str_is_one_of(verb, WRITES)))
        return false;
    if (str_equal(group, "") && str_equal(plural, "secrets"))
        return user->role == ROLE_EDIT;
    if (str_equal(group, "") && str_equal(plural, "namespaces"))
        return reads;
    return user->role == ROLE_EDIT || reads;
}
