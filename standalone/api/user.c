#include "standalone/api/user.h"

#include "common/base/str.h"

const char *const ROLE_NAMES[ROLES + 1] = { "none", "view", "edit", "admin", NULL };

static const char *const READS[] = { "get", "list", "watch" };

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

static bool is_read(const char *verb)
{
    for (size_t i = 0; i < sizeof(READS) / sizeof(READS[0]); i++) {
        if (str_equal(verb, READS[i]))
            return true;
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

bool user_may(const struct user *user, const char *verb, const char *group, const char *plural)
{
    if (user->role == ROLE_NONE)
        return false;
    if (user->role == ROLE_ADMIN || is_review(verb, group, plural))
        return true;
    if (str_equal(group, "") && str_equal(plural, "secrets"))
        return user->role == ROLE_EDIT;
    if (str_equal(group, "") && str_equal(plural, "namespaces"))
        return is_read(verb);
    return user->role == ROLE_EDIT || is_read(verb);
}

bool user_may_read_path(const struct user *user, const char *path)
{
    (void)path; /* what is served besides objects tells nothing about them */
    return user->role != ROLE_NONE;
}
