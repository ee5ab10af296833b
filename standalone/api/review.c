/* What may I do, and who am I: the reviews that kubectl auth asks for. Nothing of them is stored. */
#include "common/base/str.h"
#include "standalone/api/call.h"

#define AUTHORIZATION "authorization.k8s.io"
#define AUTHENTICATION "authentication.k8s.io"

/* An action is allowed only if there is something to act on. */
static bool review_is_served(const struct api_call *call, const char *group, const char *plural)
{
    const struct resources *resources = call->api->resources;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct kube_kind *kind = &resources_at(resources, i)->kind;

        if (str_equal(kind->group, group) && str_equal(kind->plural, plural))
            return true;
    }
    return str_has_prefix(plural, "selfsubject");
}

static int review_access(struct api_call *call, cJSON *review)
{
    const struct user *user = call->request->user;
    const cJSON *resource = json_path(review, "spec", "resourceAttributes", NULL);
    const cJSON *path = json_path(review, "spec", "nonResourceAttributes", NULL);
    const char *verb = json_get_string(resource ? resource : path, "verb");
    const char *group = json_get_string(resource, "group"),
               *plural = json_get_string(resource, "resource");
    bool allowed = user->role == ROLE_ADMIN;

    if (!resource == !path)
        return call_fail(call, 422, "Invalid",
                         "spec must have either resourceAttributes or nonResourceAttributes");
    if (path)
        allowed = allowed || str_equal(verb, "get") || str_equal(verb, "head");
    else
        allowed = user_may(user, verb, group, plural) &&
                  (allowed || review_is_served(call, group, plural));

    cJSON *status = json_set_object(review, "status");

    json_set_bool(status, "allowed", allowed);
    if (allowed)
        json_set_string(
            status, "reason",
            arena_printf(call->arena, "the role of the user is %s", ROLE_NAMES[user->role]));
    return 0;
}

static int review_who(struct api_call *call, cJSON *review)
{
    const struct user *user = call->request->user;
    cJSON *info = json_set_object(json_set_object(review, "status"), "userInfo");
    cJSON *groups = json_set_array(info, "groups");

    json_set_string(info, "username", user->name);
    json_add_string(groups, arena_printf(call->arena, ROLE_GROUP "%s", ROLE_NAMES[user->role]));
    json_add_string(groups, "system:authenticated");
    return 0;
}

static const struct {
    const char *group, *plural, *kind;
    int (*answer)(struct api_call *call, cJSON *review); /* 0, or it is refused */
} REVIEWS[] = {
    { AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", review_access },
    { AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", review_who },
};

int call_review(struct api_call *call)
{
    const struct route *route = &call->route;
    cJSON *review;

    for (size_t i = 0; i < ARRAY_LEN(REVIEWS); i++) {
        if (!str_equal(REVIEWS[i].group, route->group) ||
            !str_equal(REVIEWS[i].plural, route->plural) || !str_equal(route->version, "v1") ||
            *route->name)
            continue;
        if (!str_equal(call->request->method, "POST"))
            return call_fail_path(call, 405);
        if (call_body(call, &review) < 0)
            return -1;
        if (!cJSON_IsObject(review))
            return call_fail(call, 400, "BadRequest", "the body is no %s", REVIEWS[i].kind);
        json_remove(review, "status");
        json_set_string(review, "kind", REVIEWS[i].kind);
        json_set_string(review, "apiVersion", arena_printf(call->arena, "%s/v1", route->group));
        return REVIEWS[i].answer(call, review) < 0 ? -1 : call_reply(call, 201, review);
    }
    return 1;
}
