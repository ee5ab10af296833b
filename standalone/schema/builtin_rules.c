#include <stdint.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/schema/members.h"
#include "standalone/schema/builtin.h"
#include "standalone/schema/name_rules.h"

/* core.MaxSecretSize: all values of a Secret or ConfigMap together. */
#define MAX_DATA (1u << 20)
#define SIZE_WORDS "may not be more than 1048576 bytes"
#define ACCOUNT_ANNOTATION "kubernetes.io/service-account.name"
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

static const char *const TLS_KEYS[] = { "tls.crt", "tls.key" };

/* The member as a tree that may be changed; it is made if it is not there. */
static cJSON *member_of(cJSON *object, const char *name)
{
    cJSON *member = cJSON_DetachItemFromObjectCaseSensitive(object, name);

    if (!cJSON_IsObject(member)) {
        json_free(member);
        member = cJSON_CreateObject();
    }
    json_set(object, name, member);
    return member;
}

void ensure_members(struct arena *arena, cJSON *object, const char *always)
{
    const cJSON *members = NULL;

    if (json_parse(arena, always, strlen(always), &members, NULL) < 0)
        return;
    json_for_each (member, members) {
        if (!json_get(object, member->string))
            json_set_copy(object, member->string, member);
    }
}

void drop_empty_texts(cJSON *object)
{
    for (cJSON *member = cJSON_IsObject(object) ? object->child : NULL, *next; member;
         member = next) {
        next = member->next;
        if (str_equal(json_string(member, NULL), ""))
            json_free(cJSON_DetachItemViaPointer(object, member));
    }
}

static const char *text_at(const cJSON *object, const char *name)
{
    return json_string(json_get(object, name), "");
}

static void immutable(struct field_errors *errors, const char *path)
{
    field_error(errors, FIELD_ERROR_FORBIDDEN, path, NULL,
                "field is immutable when `immutable` is set");
}

static void immutable_field(const struct validation *validation, const char *path,
                            const char *member)
{
    const cJSON *value = json_get(validation->object, member);

    if (!json_equal(value, json_get(validation->old, member)))
        field_error(validation->errors, FIELD_ERROR_INVALID, path, value, "field is immutable");
}

/* --- namespaces ------------------------------------------------------------------------------- */

void namespace_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    cJSON *metadata = member_of(object, "metadata");

    (void)old;
    ensure_members(arena, object, NAMESPACE_ALWAYS);
    if (*text_at(metadata, "name"))
        json_set_string(member_of(metadata, "labels"), NAMESPACE_LABEL, text_at(metadata, "name"));
}

/* Always: without it the namespace would go before what is in it. */
static void add_namespace_finalizer(cJSON *spec)
{
    cJSON *finalizers = (cJSON *)(uintptr_t)json_get(spec, "finalizers");

    json_for_each (finalizer, finalizers) {
        if (str_equal(json_string(finalizer, ""), "kubernetes"))
            return;
    }
    if (!cJSON_IsArray(finalizers)) {
        json_remove(spec, "finalizers");
        finalizers = json_set_array(spec, "finalizers");
    }
    json_add_string(finalizers, "kubernetes");
}

void namespace_prepare(struct arena *arena, cJSON *object, const cJSON *old)
{
    cJSON *spec = member_of(object, "spec");

    (void)arena;
    if (!old) {
        cJSON *status = cJSON_CreateObject();

        json_set_string(status, "phase", "Active");
        json_set(object, "status", status);
        add_namespace_finalizer(spec);
        return;
    }
    json_set_copy(object, "status", json_get(old, "status"));
    json_set_copy(object, "spec", json_get(old, "spec"));
}

void namespace_validate(const struct validation *validation)
{
    const cJSON *finalizers = json_path(validation->object, "spec", "finalizers", NULL);

    json_for_each (finalizer, finalizers)
        check_qualified_name(validation->errors, "spec.finalizers", json_string(finalizer, ""),
                             json_string(finalizer, ""));
}

/* --- configmaps and secrets ------------------------------------------------------------------- */

static size_t decoded_len(const char *text)
{
    size_t len = strlen(text);

    while (len && text[len - 1] == '=')
        len--;
    return len * 3 / 4;
}

static size_t check_keys(const struct validation *validation, const char *bag, const char *other,
                         bool encoded)
{
    const struct members theirs =
        members_of(validation->arena, json_get(validation->object, other));
    size_t size = 0;

    json_for_each (item, json_get(validation->object, bag)) {
        const char *path = arena_printf(validation->arena, "%s[%s]", bag, item->string);
        const char *value = json_string(item, "");

        check_config_key(validation->errors, path, item->string);
        if (members_get(&theirs, item->string))
            invalid_text(validation->errors, path, item->string,
                         arena_printf(validation->arena, "duplicate of key present in %s", other));
        size += encoded ? decoded_len(value) : strlen(value);
    }
    return size;
}

/* immutable cannot be taken back, and then nothing of these changes. */
static void check_immutable(const struct validation *validation, const char *const *bags)
{
    if (!json_bool(json_get(validation->old, "immutable"), false))
        return;
    if (!json_bool(json_get(validation->object, "immutable"), false))
        immutable(validation->errors, "immutable");
    for (; *bags; bags++) {
        if (!json_equal(json_get(validation->object, *bags), json_get(validation->old, *bags)))
            immutable(validation->errors, *bags);
    }
}

void configmap_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", "binaryData", NULL };
    size_t size = check_keys(validation, "data", "binaryData", false) +
                  check_keys(validation, "binaryData", "data", true);

    if (size > MAX_DATA)
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, "", NULL, "%s", SIZE_WORDS);
    if (validation->old)
        check_immutable(validation, BAGS);
}

/* members: of data, before. */
static void set_data(struct arena *arena, cJSON *data, const struct members *members,
                     const cJSON *item)
{
    const char *text = json_string(item, "");
    cJSON *old = members_get(members, item->string);
    cJSON *value = cJSON_CreateString(base64_encode(arena, text, strlen(text)));

    if (old)
        members_replace(data, old, value);
    else
        members_append(data, item->string, value);
}

void secret_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)old;
    if (json_len(json_get(object, "stringData"))) {
        cJSON *data = member_of(object, "data");
        const struct members members = members_of(arena, data);

        json_for_each (item, json_get(object, "stringData"))
            set_data(arena, data, &members, item);
    }
    json_remove(object, "stringData");
    if (!*text_at(object, "type"))
        json_set_string(object, "type", "Opaque");
}

static void require(const struct validation *validation, const char *bag, const char *key)
{
    field_error_plain(validation->errors, FIELD_ERROR_REQUIRED,
                      arena_printf(validation->arena, "%s[%s]", bag, key), NULL);
}

/* The value is JSON with passwords: it is not shown. */
static void check_docker(const struct validation *validation, const char *key)
{
    const char *text = json_string(json_path(validation->object, "data", key, NULL), NULL);
    const cJSON *config = NULL;
    struct error err;
    size_t len;

    if (!text) {
        require(validation, "data", key);
        return;
    }

    const char *bytes = base64_decode(validation->arena, text, strlen(text), &len);

    if (!bytes || json_parse(validation->arena, bytes, len, &config, &err) < 0 ||
        !(cJSON_IsObject(config) || cJSON_IsNull(config)))
        field_error(validation->errors, FIELD_ERROR_INVALID,
                    arena_printf(validation->arena, "data[%s]", key), NULL,
                    "must be a JSON object");
}

/* core.ValidateSecret */
static void check_secret_type(const struct validation *validation)
{
    const char *type = text_at(validation->object, "type");
    const cJSON *data = json_get(validation->object, "data");
    const cJSON *annotations = json_path(validation->object, "metadata", "annotations", NULL);

    if (str_equal(type, "kubernetes.io/service-account-token") &&
        !*text_at(annotations, ACCOUNT_ANNOTATION))
        require(validation, "metadata.annotations", ACCOUNT_ANNOTATION);
    if (str_equal(type, "kubernetes.io/dockercfg"))
        check_docker(validation, ".dockercfg");
    if (str_equal(type, "kubernetes.io/dockerconfigjson"))
        check_docker(validation, ".dockerconfigjson");
    if (str_equal(type, "kubernetes.io/basic-auth") && !json_get(data, "username") &&
        !json_get(data, "password")) {
        require(validation, "data", "username");
        require(validation, "data", "password");
    }
    if (str_equal(type, "kubernetes.io/ssh-auth") && !*text_at(data, "ssh-privatekey"))
        require(validation, "data", "ssh-privatekey");
    for (size_t i = 0; i < ARRAY_LEN(TLS_KEYS) && str_equal(type, "kubernetes.io/tls"); i++) {
        if (!json_get(data, TLS_KEYS[i]))
            require(validation, "data", TLS_KEYS[i]);
    }
}

void secret_validate(const struct validation *validation)
{
    static const char *const BAGS[] = { "data", NULL };

    if (validation->old) {
        immutable_field(validation, "type", "type");
        check_immutable(validation, BAGS);
    }
    if (check_keys(validation, "data", "", true) > MAX_DATA)
        field_error(validation->errors, FIELD_ERROR_TOO_LONG, "data", NULL, "%s", SIZE_WORDS);
    check_secret_type(validation);
}

/* What is empty in a reference Go leaves out. */
void service_account_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    static const char *const LISTS[] = { "secrets", "imagePullSecrets" };

    (void)arena;
    (void)old;
    for (size_t i = 0; i < ARRAY_LEN(LISTS); i++) {
        json_for_each (item, json_get(object, LISTS[i]))
            drop_empty_texts((cJSON *)(uintptr_t)item);
    }
}

/* Of a reference to a Secret nothing is kept but its name. */
void service_account_prepare(struct arena *arena, cJSON *object, const cJSON *old)
{
    cJSON *named = cJSON_CreateArray();

    (void)arena;
    (void)old;
    json_for_each (secret, json_get(object, "secrets")) {
        cJSON *reference = json_add_object(named);

        if (*text_at(secret, "name"))
            json_set_string(reference, "name", text_at(secret, "name"));
    }
    if (json_first(named))
        json_set(object, "secrets", named);
    else
        json_free(named);
}

void service_account_validate(const struct validation *validation)
{
    (void)validation; /* its metadata is all */
}

/* --- leases ----------------------------------------------------------------------------------- */

void lease_fill(struct arena *arena, cJSON *object, const cJSON *old)
{
    (void)old;
    ensure_members(arena, object, LEASE_ALWAYS);
}

void lease_validate(const struct validation *validation)
{
    const cJSON *spec = json_get(validation->object, "spec");
    const cJSON *seconds = json_get(spec, "leaseDurationSeconds");
    const cJSON *transitions = json_get(spec, "leaseTransitions");

    if (seconds && json_int(seconds, 1) <= 0)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.leaseDurationSeconds", seconds,
                    "must be greater than 0");
    if (transitions && json_int(transitions, 0) < 0)
        field_error(validation->errors, FIELD_ERROR_INVALID, "spec.leaseTransitions", transitions,
                    "must be greater than or equal to 0");
}
