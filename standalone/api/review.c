/* What may I do, and who am I: the reviews that kubectl auth asks for. Nothing of them is stored. */
#include "common/base/str.h"
#include "standalone/api/call.h"

#define AUTHORIZATION "authorization.k8s.io"
#define AUTHENTICATION "authentication.k8s.io"

static const char *const READ_VERBS[] = { "get", "list", "watch" };
static const char *const WRITE_VERBS[] = { "create", "update", "patch", "delete",
                                           "deletecollection" };

static bool is_allowed(const struct api_call *call, const cJSON *spec)
{
    const cJSON *attributes = json_get(spec, "resourceAttributes");
    const cJSON *path = json_get(spec, "nonResourceAttributes");

    if (path)
        return user_may_read_path(call->request->user, json_string(json_get(path, "path"), ""));
    return user_may(call->request->user, json_string(json_get(attributes, "verb"), ""),
                    json_string(json_get(attributes, "group"), ""),
                    json_string(json_get(attributes, "resource"), ""));
}

static void answer_access(struct api_call *call, cJSON *review)
{
    cJSON *status = json_set_object(review, "status");
    bool allowed = is_allowed(call, json_get(review, "spec"));

    json_set_bool(status, "allowed", allowed);
    if (allowed)
        json_set_string(status, "reason",
                        arena_printf(call->arena, "the role of the user is %s",
                                     ROLE_NAMES[call->request->user->role]));
}

static void answer_who(struct api_call *call, cJSON *review)
{
    const struct user *user = call->request->user;
    cJSON *info = json_set_object(json_set_object(review, "status"), "userInfo");
    cJSON *groups;

    json_set_string(info, "username", user->name);
    groups = json_set_array(info, "groups");
    json_add_string(groups, arena_printf(call->arena, "propeller:%s", ROLE_NAMES[user->role]));
    json_add_string(groups, "system:authenticated");
}

static void add_verbs(struct api_call *call, cJSON *verbs, const char *const *names, size_t len,
                      const struct kube_kind *kind)
{
    for (size_t i = 0; i < len; i++) {
        if (user_may(call->request->user, names[i], kind->group, kind->plural))
            json_add_string(verbs, names[i]);
    }
}

static void answer_rules(struct api_call *call, cJSON *review)
{
    const struct resources *resources = call->api->resources;
    cJSON *status = json_set_object(review, "status");
    cJSON *rules = json_set_array(status, "resourceRules");

    for (size_t i = 0; i < resources_len(resources); i++) {
        const struct kube_kind *kind = &resources_at(resources, i)->kind;
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
}

static const struct {
    const char *group;
    const char *plural;
    const char *kind;
    void (*answer)(struct api_call *call, cJSON *review);
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
            return call_fail(call, 405, "MethodNotAllowed",
                             "the server does not allow this method on the requested resource");
        if (call_body(call, &review) < 0)
            return -1;
        if (!cJSON_IsObject(review))
            return call_fail(call, 400, "BadRequest", "the body is no %s", REVIEWS[i].kind);
        json_remove(review, "status");
        json_set_string(review, "kind", REVIEWS[i].kind);
        json_set_string(review, "apiVersion", arena_printf(call->arena, "%s/v1", route->group));
        REVIEWS[i].answer(call, review);
        return call_reply(call, 201, review);
    }
    return call_fail(call, 404, "NotFound", "the server could not find the requested resource");
}
