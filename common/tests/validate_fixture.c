#include "common/tests/validate_fixture.h"

#include "common/api/admission.h"
#include "common/api/kinds.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/tests/apply_patch.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

static const struct {
    const char *kind;
    const char *least;
    const struct kube_kind *of;
} KINDS[] = {
    { "task", "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"name\":\"t\",\"imageUrl\":\"i\"}}",
      &KIND_TASK },
    { "task/status", "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"name\":\"t\",\"imageUrl\":\"i\"}}",
      &KIND_TASK },
    { "proplet",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"type\":\"external\",\"connectionConfig\":{"
      "\"mqttAddress\":\"tcp://b:1883\",\"domainId\":\"d\",\"channelId\":\"c\",\"clientId\":\"i\","
      "\"clientKey\":\"planted\"}}}",
      &KIND_PROPLET },
    { "propellerjob",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"name\":\"j\",\"taskRefs\":[\"a\"]}}",
      &KIND_PROPELLERJOB },
    { "federatedjob",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"experimentId\":\"e\",\"taskWasmImage\":\"https://"
      "w/m\","
      "\"participants\":[{\"propletId\":\"a\"},{\"propletId\":\"b\"}],\"rounds\":{\"total\":1}}}",
      &KIND_FEDERATEDJOB },
    { "traininground",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"roundId\":\"r\",\"federatedJobRef\":{"
      "\"name\":\"f\"},\"taskWasmImage\":\"i\",\"participants\":[\"a\",\"b\"]}}",
      &KIND_TRAININGROUND },
    { "enrollment",
      "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"domainId\":\"d\",\"channelId\":\"c\","
      "\"mqttAddress\":"
      "\"tcp://b:1883\"}}",
      &KIND_ENROLLMENT },
};

static const struct admission_policy *present_policy;

void validate_under(const struct admission_policy *policy)
{
    present_policy = policy;
}

static size_t find(const char *kind)
{
    size_t i = 0;

    while (i < ARRAY_LEN(KINDS) && !str_equal(KINDS[i].kind, kind))
        i++;
    ck_assert_msg(i < ARRAY_LEN(KINDS), "no kind '%s'", kind);
    return i;
}

const cJSON *object_with(struct arena *arena, const char *kind, const char *patch)
{
    const cJSON *least = parsed(arena, KINDS[find(kind)].least);

    if (!patch)
        return least;
    return arena_own(arena, apply_merge_patch(json_copy(least), parsed(arena, patch)), json_free);
}

/* Made once: most tests validate many objects of a kind. */
static const struct schema *schema_of(size_t kind, const struct admission *admission)
{
    static const struct schema *schemas[ARRAY_LEN(KINDS)];
    static struct arena *forever;

    if (!forever)
        forever = arena_create();
    if (!schemas[kind])
        schemas[kind] = admission_schema(forever, admission);
    return schemas[kind];
}

static struct field_errors *check(struct arena *arena, const char *kind, const cJSON *object,
                                  const cJSON *old)
{
    const struct validation validation = {
        .arena = arena,
        .object = object,
        .old = old,
        .now_us = VALIDATE_NOW_US,
        .policy = present_policy,
        .errors = field_errors_create(arena),
    };

    const struct admission *admission = ADMISSION;

    while (admission->kind != KINDS[find(kind)].of)
        admission++;
    if (strstr(kind, "/status"))
        admission->validate_status(&validation);
    else
        admission_validate(admission, schema_of(find(kind), admission), &validation);
    return validation.errors;
}

const char *errors_of(struct arena *arena, const char *kind, const cJSON *object, const cJSON *old)
{
    struct field_errors *errors = check(arena, kind, object, old);

    if (!field_errors_count(errors))
        return "";

    const cJSON *status = field_errors_status(errors, "", "Task", "x");
    const char *message = json_string(json_get(status, "message"), "");
    const char *body = strstr(message, " is invalid: ");

    ck_assert_ptr_nonnull(body);
    return body + strlen(" is invalid: ");
}

const char *warnings_of(struct arena *arena, const char *kind, const cJSON *object,
                        const cJSON *old)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(65536);

    json_for_each (warning, field_errors_warnings(check(arena, kind, object, old)))
        ck_assert(buf_printf(&text, "%s%s", text.len ? " | " : "", json_string(warning, "")));
    return arena_strdup(arena, buf_string(&text));
}
