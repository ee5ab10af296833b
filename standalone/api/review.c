/* What may I do, and who am I: the reviews that kubectl auth asks for. Nothing of them is stored. */
#include "common/base/str.h"
#include "standalone/api/call.h"
#include "standalone/api/pods.h"

#define AUTHORIZATION "authorization.k8s.io"
#define AUTHENTICATION "authentication.k8s.io"
#define AUTHENTICATED "system:authenticated"

static const char *const READ_VERBS[] = { "get", "list", "watch" };
static const char *const WRITE_VERBS[] = { "create", "update", "patch", "delete",
                                           "deletecollection" };

static const char *text_of(const cJSON *object, const char *field)
{
    return json_string(json_get(object, field), "");
}

/* That there is something to act on: to say yes to anything else would be no use to who asks. */
static bool is_served(const struct api_call *call, const char *group, const char *plural)
{
    const struct resources *resources = call->api->resources;

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct kube_kind *kind = &resources_at(resources, i)->kind;

        if (str_equal(kind->group, group) && str_equal(kind->plural, plural))
            return true;
    }
    return false;
}

static bool may_act(const struct api_call *call, const cJSON *attributes)
{
    const struct user *user = call->request->user;
    const char *group = text_of(attributes, "group");
    const char *plural = text_of(attributes, "resource");

    if (user->role != ROLE_ADMIN && !is_served(call, group, plural) &&
        !pods_is_kind(group, plural) && !str_has_prefix(plural, "selfsubject"))
        return false;
    return user_may(user, text_of(attributes, "verb"), group, plural);
}

static bool may_get(const struct api_call *call, const cJSON *attributes)
{
    const struct user *user = call->request->user;
    const char *verb = text_of(attributes, "verb");

    return user->role == ROLE_ADMIN || ((str_equal(verb, "get") || str_equal(verb, "head")) &&
                                        user_may_read_path(user, text_of(attributes, "path")));
}

/* NULL: neither is there to be asked about both, nor none. */
static const char *why_invalid(const cJSON *resource, const cJSON *path)
{
    if (resource && path)
        return "spec.nonResourceAttributes: Invalid value: cannot be specified in combination with "
               "resourceAttributes";
    if (!resource && !path)
        return "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes "
               "or resourceAttributes must be specified";
    return NULL;
}

static int answer_access(struct api_call *call, cJSON *review)
{
    const cJSON *resource = json_path(review, "spec", "resourceAttributes", NULL);
    const cJSON *path = json_path(review, "spec", "nonResourceAttributes", NULL);
    const char *problem = why_invalid(resource, path);

    if (problem)
        return call_fail(call, 422, "Invalid",
                         "SelfSubjectAccessReview." AUTHORIZATION " \"\" is invalid: %s", problem);

    bool allowed = path ? may_get(call, path) : may_act(call, resource);
    cJSON *status = json_set_object(review, "status");

    json_set_bool(status, "allowed", allowed);
    if (allowed)
        json_set_string(status, "reason",
                        arena_printf(call->arena, "the role of the user is %s",
                                     ROLE_NAMES[call->request->user->role]));
    return 0;
}

static int answer_who(struct api_call *call, cJSON *review)
{
    const struct user *user = call->request->user;
    cJSON *info = json_set_object(json_set_object(review, "status"), "userInfo");
    cJSON *groups;
    bool is_last_there = false;

    json_set_string(info, "username", user->name);
    if (user->uid)
        json_set_string(info, "uid", user->uid);
    groups = json_set_array(info, "groups");
    if (!user->groups)
        json_add_string(groups, arena_printf(call->arena, ROLE_GROUP "%s", ROLE_NAMES[user->role]));
    for (size_t i = 0; user->groups && user->groups[i]; i++) {
        json_add_string(groups, user->groups[i]);
        is_last_there = is_last_there || str_equal(user->groups[i], AUTHENTICATED);
    }
    if (!is_last_there)
        json_add_string(groups, AUTHENTICATED);
    return 0;
}

static void add_verbs(struct api_call *call, cJSON *verbs, const char *const *names, size_t len,
                      const struct kube_kind *kind)
{
    for (size_t i = 0; i < len; i++) {
        if (user_may(call->request->user, names[i], kind->group, kind->plural))
            json_add_string(verbs, names[i]);
    }
}

static int answer_rules(struct api_call *call, cJSON *review)
{
    const struct resources *resources = call->api->resources;
    cJSON *status = json_set_object(review, "status");
    cJSON *rules = json_set_array(status, "resourceRules");

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct kube_kind *kind = &resources_at(resources, i)->kind;

        if (!user_may(call->request->user, "list", kind->group, kind->plural))
            continue;

        cJSON *rule = json_add_object(rules);
        cJSON *verbs = json_set_array(rule, "verbs");

        add_verbs(call, verbs, READ_VERBS, ARRAY_LEN(READ_VERBS), kind);
        add_verbs(call, verbs, WRITE_VERBS, ARRAY_LEN(WRITE_VERBS), kind);
        json_add_string(json_set_array(rule, "apiGroups"), kind->group);
        json_add_string(json_set_array(rule, "resources"), kind->plural);
    }

    cJSON *paths = json_add_object(json_set_array(status, "nonResourceRules"));

    json_add_string(json_set_array(paths, "verbs"), "get");
    json_add_string(json_set_array(paths, "nonResourceURLs"), "*");
    json_set_bool(status, "incomplete", false);
    return 0;
}

static const struct {
    const char *group;
    const char *plural;
    const char *kind;
    int (*answer)(struct api_call *call, cJSON *review); /* 0, or it is refused */
} REVIEWS[] = {
    { AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", answer_access },
    { AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", answer_rules },
    { AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview", answer_who },
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
