/* Admission policy: what each flag refuses, of which object, and that values which did not change stay. */
#include "common/api/policy.h"
#include "common/tests/apply_patch.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

#define HEX32 "0123456789abcdef0123456789abcdef"
#define DIGEST "@sha256:" HEX32 HEX32

/* A list of a flag as it stands in a table of a test. */
static struct str_list list_of(const char *text)
{
    struct str_list list = { .items = arena_array(arena, const char *, 16) };
    char *rest = arena_strdup(arena, text ? text : "");

    for (char *item; (item = strtok_r(rest, ",", &rest)) != NULL;)
        list.items[list.len++] = item;
    return list;
}

TEST_GROUP("policy", arena_set_up, arena_tear_down);

/* --- hosts ------------------------------------------------------------------------------------ */

#define OTHER "must not be of this host or path: allowed are %s"
#define SEGMENTS "must not have the path segments . and .., or quoted dots and slashes"
#define USER "must not have a user name or a password in its address"
#define NO_HOST "must begin with a host: allowed are %s"
#define NO_PORT "must have a host, and a port of digits only if there is one"
#define FORM "must be HOST/PATH:TAG@DIGEST"
#define UNPRINTABLE "must be of printable ASCII characters, without spaces and backslashes"

static const struct {
    const char *hosts;
    const char *reference;
    const char *problem; /* with %s for the hosts; NULL: it is allowed */
} HOSTS[] = {
    { NULL, "anything/at:all", NULL },
    { "reg.example", "reg.example/team/a:1", NULL },
    { "reg.example", "oci://reg.example/team/a:1", NULL },
    { "reg.example", "REG.Example/team/a:1", NULL },
    { "REG.example", "HTTPS://reg.EXAMPLE/a.wasm", NULL },
    { "reg.example", "other.example/a", OTHER },
    { "reg.example", "reg.example.evil.example/a", OTHER },
    { "reg.example", "evil.example/reg.example/a", OTHER },
    { "a.example,b.example", "https://b.example/x", NULL },
    { "a.example,b.example", "https://c.example/x", OTHER },
    /* ports */
    { "reg.example", "https://reg.example:443/a", NULL },
    { "reg.example:443", "reg.example/a", NULL },
    { "reg.example", "http://reg.example:80/a", NULL },
    { "reg.example:443", "http://reg.example/a", OTHER },
    { "reg.example", "reg.example:5000/a", OTHER },
    { "reg.example:5000", "reg.example:5000/a:5000", NULL },
    { "reg.example:5000", "reg.example:05000/a", NULL },
    { "reg.example:5000", "reg.example/a", OTHER },
    { "reg.example", "https://reg.example:/a", NO_PORT },
    { "reg.example", "https://reg.example:443x/a", NO_PORT },
    { "reg.example", "https://reg.example:99999/a", NO_PORT },
    { "[2001:db8::1]:5000", "[2001:DB8::1]:5000/a", NULL },
    { "[2001:db8::1]", "https://[2001:db8::1/a", NO_PORT },
    { "localhost", "localhost/a", NULL },
    /* prefixes end at a slash, and are compared exactly */
    { "reg.example/team", "reg.example/team/a:1", NULL },
    { "reg.example/team/", "reg.example/team/a:1", NULL },
    { "reg.example/team", "reg.example/team:1", NULL },
    { "reg.example/team", "reg.example/team" DIGEST, NULL },
    { "reg.example/team", "reg.example/team-b/a", OTHER },
    { "reg.example/team", "reg.example/Team/a", OTHER },
    { "reg.example/team", "reg.example/", OTHER },
    { "reg.example/team", "https://reg.example/team?x=/../", NULL },
    { "reg.example/team", "https://reg.example/team#x", NULL },
    { "reg.example/team", "https://reg.example/team:1/x", OTHER },
    { "reg.example/team", "https://reg.example//team/x", OTHER },
    { "reg.example/team", "https://reg.example?/team/", OTHER },
    { "reg.example/team", "https://reg.example/team/../b/x", SEGMENTS },
    { "reg.example/team", "https://reg.example/team/..", SEGMENTS },
    { "reg.example/team", "https://reg.example/team/./x", SEGMENTS },
    { "reg.example/team", "https://reg.example/team/%2E%2e/b", SEGMENTS },
    { "reg.example/team", "https://reg.example/team/..%2fb", SEGMENTS },
    { "reg.example/team", "https://reg.example/team/..%5Cb", SEGMENTS },
    { "reg.example/team", "https://reg.example/team\\..\\b", UNPRINTABLE },
    /* who is asked must be sure */
    { "reg.example", "https://user@reg.example/a", USER },
    { "reg.example", "https://reg.example@evil.example/a", USER },
    { "reg.example", "https://reg.example:pw@evil.example/a", USER },
    { "reg.example", "reg.example@evil.example/a", FORM },
    { "reg.example/team", "https://reg.example/team/..;x/b", SEGMENTS },
    { "reg.example/team", "reg.example/team@../../b", FORM },
    { "reg.example", "reg.example/a#x", FORM },
    { "reg.example", "reg.example/a@sha256:0@sha256:0", FORM },
    { "reg.example", "@sha256:0", FORM },
    { "reg.example", "https:/reg.example/a", FORM },
    { "reg.example", "file://reg.example/a",
      "must be an OCI reference, or an address of https or http" },
    { "reg.example", "https://evil.example#@reg.example/a", OTHER },
    { "reg.example", "https://evil.example\\@reg.example/a", UNPRINTABLE },
    { "reg.example", "https://reg.example\t/a", UNPRINTABLE },
    { "reg.example", "https://r\303\251g.example/a", UNPRINTABLE },
    { "reg.example", "https:///reg.example/a", NO_PORT },
    { "reg.example", "nginx", NO_HOST },
    { "reg.example", "team/a:1", NO_HOST },
    { "reg.example", "reg.example", NO_HOST },
    { "reg.example", "reg.example:5000", NO_HOST },
};

TEST_EACH(a_host_is_allowed_with_its_port_and_path, HOSTS)
{
    const struct admission_policy policy = { .image_hosts = list_of(HOSTS[_i].hosts) };
    const char *problem = policy_module_problem(arena, &policy, HOSTS[_i].reference);
    struct error err = { 0 };

    ck_assert_int_eq(admission_policy_check(&policy, &err), 0);
    if (!HOSTS[_i].problem) {
        ck_assert_msg(!problem, "%s", problem);
        return;
    }
    ck_assert_ptr_nonnull(problem);
    if (!strchr(HOSTS[_i].problem, '%'))
        ck_assert_str_eq(problem, HOSTS[_i].problem);
    else
        ck_assert_int_eq(strncmp(problem, HOSTS[_i].problem, strcspn(HOSTS[_i].problem, "%")), 0);
}

TEST(a_message_shows_the_first_entries_only)
{
    const struct admission_policy policy = { .image_hosts = list_of("a,b,c,d,e,f,g,h,i,j") };

    ck_assert_str_eq(policy_image_problem(arena, &policy, "r.example/x"),
                     "must not be of this host or path: allowed are a, b, c, d, e, f, g, h and "
                     "others");
}

/* --- the objects ------------------------------------------------------------------------------ */

struct flags {
    const char *schemes, *hosts, *models, *devices;
    bool digests;
};

static void use_policy(const struct flags *flags)
{
    static struct admission_policy policy;

    policy = (struct admission_policy){ .image_schemes = list_of(flags->schemes),
                                        .image_hosts = list_of(flags->hosts),
                                        .require_image_digests = flags->digests,
                                        .model_schemes = list_of(flags->models),
                                        .device_types = list_of(flags->devices) };
    validate_under(&policy);
}

static const cJSON *with_spec(const char *kind, const char *patch)
{
    return object_with(arena, kind, arena_printf(arena, "{\"spec\":%s}", patch));
}

#define WASM "\"file\":\"AGFzbQEAAAA=\""

static const struct {
    struct flags flags;
    const char *kind;
    const char *spec;
    const char *errors; /* "": it is allowed */
} OBJECTS[] = {
    { { .schemes = "oci,https" },
      "task",
      "{" WASM ",\"imageUrl\":null}",
      "spec.file: Forbidden: must not be inline: allowed are oci, https" },
    { { .schemes = "inline" }, "task", "{" WASM ",\"imageUrl\":null}", "" },
    { { .schemes = "inline" },
      "task",
      "{}",
      "spec.imageUrl: Forbidden: must not be oci: allowed are inline" },
    { { .schemes = "oci,https" },
      "task",
      "{\"imageUrl\":\"HTTP://u:pw@h/m\"}",
      "spec.imageUrl: Forbidden: must not be http: allowed are oci, https" },
    { { .schemes = "oci" },
      "task",
      "{\"imageUrl\":\"ftp://h/m\"}",
      "spec.imageUrl: Forbidden: must not be ftp: allowed are oci" },
    { { .schemes = "oci" },
      "task",
      "{\"imageUrl\":\"h/m\\nhttps://x\"}",
      "spec.imageUrl: Forbidden: " UNPRINTABLE },
    { { .schemes = "https" },
      "propellerjob",
      "{\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"https://h/m\"},{\"name\":\"b\"," WASM "}]}",
      "spec.tasks[1].file: Forbidden: must not be inline: allowed are https" },
    { { .schemes = "oci" },
      "federatedjob",
      "{}",
      "spec.taskWasmImage: Forbidden: must not be https: allowed are oci" },
    { { .schemes = "https" },
      "traininground",
      "{}",
      "spec.taskWasmImage: Forbidden: must not be oci: allowed are https" },
    /* digests */
    { { .digests = true }, "task", "{\"imageUrl\":\"h.example/m" DIGEST "\"}", "" },
    { { .digests = true }, "task", "{\"imageUrl\":\"https://h/m\"}", "" },
    { { .digests = true }, "task", "{" WASM ",\"imageUrl\":null}", "" },
    { { .digests = true },
      "task",
      "{\"imageUrl\":\"h.example/m:1\"}",
      "spec.imageUrl: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower case" },
    { { .digests = true },
      "task",
      "{\"imageUrl\":\"h.example/m@sha256:" HEX32 "\"}",
      "spec.imageUrl: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower case" },
    { { .digests = true },
      "task",
      "{\"imageUrl\":\"h/m@sha256:" HEX32 HEX32 "g\"}",
      "spec.imageUrl: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower case" },
    { { .digests = true },
      "task",
      "{\"imageUrl\":\"h/m@sha256:" HEX32 "0123456789ABCDEF0123456789abcdef\"}",
      "spec.imageUrl: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower case" },
    { { .digests = true },
      "traininground",
      "{}",
      "spec.taskWasmImage: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower "
      "case" },
    /* pods of a Proplet */
    { { .hosts = "r.example", .schemes = "https" },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"r.example/p:1\"}}",
      "" },
    { { .hosts = "r.example" },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"x.example/p:1\"}}",
      "spec.k8s.image: Forbidden: must not be of this host or path: allowed are r.example" },
    { { .digests = true },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"r.example/p:1\"}}",
      "spec.k8s.image: Forbidden: must end in @sha256: and 64 hexadecimal digits in lower case" },
    { { .hosts = "r.example" },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"r.example/p" DIGEST
      "\",\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"a\","
      "\"image\":\"r.example/a\"},{\"name\":\"b\",\"image\":\"x.example/b\"}]}}}}",
      "spec.k8s.podTemplate.spec.containers[1].image: Forbidden: must not be of this host or path: "
      "allowed are r.example" },
    { { .digests = true },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"r.example/p" DIGEST
      "\",\"podTemplate\":{\"spec\":{\"initContainers\":[{\"image\":"
      "\"r.example/a\"}]}}}}",
      "spec.k8s.podTemplate.spec.initContainers[0].image: Forbidden: must end in @sha256: and 64 "
      "hexadecimal digits in lower case" },
    { { .digests = true },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"r.example/p" DIGEST
      "\",\"podTemplate\":{\"spec\":{\"volumes\":[{\"image\":{"
      "\"reference\":\"r.example/a\"}}]}}}}",
      "spec.k8s.podTemplate.spec.volumes[0].image.reference: Forbidden: must end in @sha256: and "
      "64 hexadecimal digits in lower case" },
    /* models */
    { { .models = "model,s3" }, "federatedjob", "{}", "" },
    { { .models = "model,s3" }, "federatedjob", "{\"modelRef\":\"\"}", "" },
    { { .models = "model,s3" }, "federatedjob", "{\"modelRef\":\"s3://b/k\"}", "" },
    { { .models = "model,s3" },
      "federatedjob",
      "{\"modelRef\":\"configmap://c/k\"}",
      "spec.modelRef: Forbidden: must not be configmap: allowed are model, s3" },
    { { .models = "s3" },
      "traininground",
      "{\"modelRef\":\"model://m\"}",
      "spec.modelRef: Forbidden: must not be model: allowed are s3" },
    { { .models = "s3" },
      "traininground",
      "{\"modelRef\":\"m\"}",
      "spec.modelRef: Forbidden: must not be without a scheme: allowed are s3" },
    /* devices */
    { { .devices = "pi,esp32" }, "proplet", "{\"external\":{\"deviceType\":\"esp32\"}}", "" },
    { { .devices = "pi,esp32" },
      "proplet",
      "{\"external\":{\"deviceType\":\"Pi\"}}",
      "spec.external.deviceType: Forbidden: must be one of pi, esp32" },
    { { .devices = "pi,esp32" },
      "proplet",
      "{\"external\":{}}",
      "spec.external.deviceType: Forbidden: must be one of pi, esp32" },
    { { .devices = "pi" },
      "proplet",
      "{}",
      "spec.external.deviceType: Forbidden: must be one of pi" },
    { { .devices = "pi" }, "proplet", "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"}}", "" },
    { { .devices = "pi" },
      "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"i\"},\"external\":{\"deviceType\":\"x\"}}",
      "spec.external.deviceType: Forbidden: must be one of pi" },
    { { .digests = true },
      "task",
      "{\"imageUrl\":\"docker://h/m" DIGEST "\"}",
      "spec.imageUrl: Forbidden: must be an OCI reference, or an address of https or http" },
};

TEST_EACH(a_new_object_keeps_to_the_policy, OBJECTS)
{
    use_policy(&OBJECTS[_i].flags);
    ck_assert_str_eq(
        errors_of(arena, OBJECTS[_i].kind, with_spec(OBJECTS[_i].kind, OBJECTS[_i].spec), NULL),
        OBJECTS[_i].errors);
}

static const struct flags STRICT = {
    .schemes = "https", .hosts = "new.example", .models = "s3", .devices = "pi", .digests = true
};

#define OTHER_TASKS                                                                                \
    "\"tasks\":[{\"name\":\"a\",\"imageUrl\":\"h.example/a\"},{\"name\":\"b\"," WASM "}]"

static const struct {
    const char *kind;
    const char *old;
    const char *change;
    const char *errors;
} CHANGES[] = {
    { "task", "{\"imageUrl\":\"h.example/m:1\"}", "{\"suspend\":true}", "" },
    { "task", "{\"imageUrl\":\"h.example/m:1\"}", "{\"imageUrl\":\"h.example/m:2\"}",
      "spec.imageUrl: Forbidden: must not be oci: allowed are https" },
    { "task", "{" WASM ",\"imageUrl\":null}", "{\"suspend\":true}", "" },
    /* the device runs it from now on, in place of the file */
    { "task", "{" WASM ",\"imageUrl\":\"h/m\"}", "{\"file\":null}",
      "spec.imageUrl: Forbidden: must not be oci: allowed are https" },
    { "proplet", "{\"external\":{\"deviceType\":\"\"}}", "{\"external\":{\"deviceType\":null}}",
      "" },
    { "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"x/p\",\"podTemplate\":{\"spec\":{\"volumes\":[{"
      "\"image\":{\"reference\":\"x/v\"}},{\"image\":{\"reference\":\"x/w\"}}]}}}}",
      "{\"k8s\":{\"replicas\":2}}", "" },
    { "propellerjob", "{" OTHER_TASKS "}", "{\"suspend\":true}", "" },
    /* another place in the list is no change; another name is one */
    { "propellerjob", "{" OTHER_TASKS "}",
      "{\"tasks\":[{\"name\":\"b\"," WASM "},{\"name\":\"a\",\"imageUrl\":\"h.example/a\"}]}", "" },
    { "propellerjob", "{" OTHER_TASKS "}", "{\"tasks\":[{\"name\":\"c\"," WASM "}]}",
      "spec.tasks[0].file: Forbidden: must not be inline: allowed are https" },
    { "federatedjob", "{\"taskWasmImage\":\"h/m\",\"modelRef\":\"configmap://c/k\"}",
      "{\"suspend\":true}", "" },
    { "proplet", "{}", "{\"unschedulable\":true}", "" },
    { "proplet", "{\"external\":{\"deviceType\":\"esp32\"}}", "{\"unschedulable\":true}", "" },
    { "proplet", "{\"external\":{\"deviceType\":\"pi\"}}", "{\"external\":null}",
      "spec.external.deviceType: Forbidden: must be one of pi" },
    { "proplet",
      "{\"type\":\"k8s\",\"k8s\":{\"image\":\"x/p\",\"podTemplate\":{\"spec\":{\"containers\":[{"
      "\"name\":\"a\",\"image\":\"x/a\"}],\"volumes\":[{\"name\":\"v\",\"image\":{"
      "\"reference\":\"x/v\"}}]}}}}",
      "{\"k8s\":{\"replicas\":2}}", "" },
};

TEST_EACH(a_stricter_policy_refuses_no_value_that_stays, CHANGES)
{
    const cJSON *old = with_spec(CHANGES[_i].kind, CHANGES[_i].old);
    const cJSON *change = parsed(arena, arena_printf(arena, "{\"spec\":%s}", CHANGES[_i].change));
    const cJSON *object = arena_own(arena, apply_merge_patch(json_copy(old), change), json_free);

    use_policy(&STRICT);
    ck_assert_str_eq(errors_of(arena, CHANGES[_i].kind, object, old), CHANGES[_i].errors);
}

static const struct {
    const char *image;
    bool warns;
} IMAGES[] = {
    { "h.example/m:1", true },        { "h.example/m", true },
    { "oci://h.example/m", true },    { "h.example/m@sha256:00", true },
    { "h.example/m" DIGEST, false },  { "oci://h.example/m:1" DIGEST, false },
    { "https://h.example/m", false },
};

TEST_EACH(participants_of_a_job_should_get_one_module, IMAGES)
{
    const cJSON *job = with_spec(
        "federatedjob", arena_printf(arena, "{\"taskWasmImage\":\"%s\"}", IMAGES[_i].image));

    ck_assert_str_eq(warnings_of(arena, "federatedjob", job, NULL),
                     IMAGES[_i].warns ? "spec.taskWasmImage: participants may get different "
                                        "modules: use a digest"
                                      : "");
}

/* --- the flags -------------------------------------------------------------------------------- */

#define NO_SUCH_HOST(text) "--allow-image-hosts: '" text "' is not HOST[:PORT][/PREFIX]"

static const struct {
    struct flags flags;
    const char *message;
} UNUSABLE[] = {
    { { .schemes = "oci,ftp" },
      "--allow-image-schemes: 'ftp' is not one of inline, oci, https, http" },
    { { .schemes = "OCI" }, "--allow-image-schemes: 'OCI' is not one of inline, oci, https, http" },
    { { .models = "http" },
      "--allow-model-schemes: 'http' is not one of model, configmap, s3, https" },
    { { .devices = "pi, esp32" },
      "--allow-device-types: ' esp32' must not begin or end with a blank" },
    { { .hosts = "a.example,https://b.example" }, NO_SUCH_HOST("https://b.example") },
    { { .hosts = "/team" }, NO_SUCH_HOST("/team") },
    { { .hosts = "a.example:" }, NO_SUCH_HOST("a.example:") },
    { { .hosts = "a.example:0" }, NO_SUCH_HOST("a.example:0") },
    { { .hosts = "a.example:65536" }, NO_SUCH_HOST("a.example:65536") },
    { { .hosts = "u@a.example" }, NO_SUCH_HOST("u@a.example") },
    { { .hosts = "*.example" }, NO_SUCH_HOST("*.example") },
    { { .hosts = "a.example/../b" }, NO_SUCH_HOST("a.example/../b") },
    { { .hosts = "a.example/b//c" }, NO_SUCH_HOST("a.example/b//c") },
    { { .hosts = "a .example" }, NO_SUCH_HOST("a .example") },
    { { .hosts = "[::1" }, NO_SUCH_HOST("[::1") },
};

TEST_EACH(a_flag_says_which_values_it_takes, UNUSABLE)
{
    const struct flags *flags = &UNUSABLE[_i].flags;
    const struct admission_policy policy = { .image_schemes = list_of(flags->schemes),
                                             .image_hosts = list_of(flags->hosts),
                                             .model_schemes = list_of(flags->models),
                                             .device_types = list_of(flags->devices) };
    struct error err = { 0 };

    ck_assert_int_eq(admission_policy_check(&policy, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, UNUSABLE[_i].message);
}
