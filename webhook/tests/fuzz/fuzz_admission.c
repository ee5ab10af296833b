/* Review bytes: the first one chooses the hook. Whatever they are, the answer is a review that the
 * API server accepts, or a reason; a patch fits the object, and with it applied nothing is left to
 * be added. */
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/json/jsonpatch.h"
#include "common/tests/fuzz/target.h"
#include "common/tests/heap.h"
#include "webhook/admission.h"

#define HOOKS 9

/* Each of the 1,000 tasks of a PropellerJob may be three bytes long, and gets some defaults: operations of a patch, of
 * half a kilobyte each before they are one text. */
size_t fuzz_base(void)
{
    return (size_t)4 << 20;
}

static const struct admission_settings SETTINGS = { .zoneinfo = NULL };

static const cJSON *parse(struct arena *arena, const char *text, size_t len)
{
    const struct json_reading own = { .own = true };
    struct error err = { 0 };
    const cJSON *json;

    REQUIRE(json_parse_with(arena, text, len, &own, &json, &err) == 0);
    return json;
}

/* The document with the patch applied to its object gets no patch. */
static void check_patch(struct arena *arena, const struct admission_hook *hook,
                        const cJSON *request, const char *encoded)
{
    size_t len;
    const char *text = base64_decode(arena, encoded, strlen(encoded), &len);
    cJSON *object;

    REQUIRE(text);
    REQUIRE(json_patch_apply(arena, json_get(request, "object"), parse(arena, text, len), &object,
                             NULL) == 0);

    struct defaulting again = { .arena = arena,
                                .object = object,
                                .old = json_get(request, "oldObject"),
                                .patch = json_patch_create(arena, object) };
    if (!str_equal(json_string(json_get(request, "operation"), ""), "UPDATE"))
        again.old = NULL;
    hook->admission->apply_defaults(&again);
    REQUIRE(!json_patch_operations(again.patch));
}

static void check_answer(struct arena *arena, const struct admission_hook *hook,
                         const cJSON *request, const struct admission_answer *answer)
{
    const cJSON *response = json_get(parse(arena, answer->body, answer->body_len), "response");
    const cJSON *patch = json_get(response, "patch");
    const cJSON *status = json_get(response, "status");

    REQUIRE(json_equal(json_get(response, "uid"), json_get(request, "uid")));
    REQUIRE(json_bool(json_get(response, "allowed"), !answer->allowed) == answer->allowed);
    REQUIRE(answer->allowed == !status);
    REQUIRE(!status || (json_int(json_get(status, "code"), 0) == 422 &&
                        json_len(json_path(status, "details", "causes", NULL)) > 0));
    REQUIRE(!patch == !json_get(response, "patchType"));
    if (patch)
        check_patch(arena, hook, request, json_string(patch, ""));
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct admission_answer answer;
    struct error err = { 0 };

    json_init();
    if (!len)
        return;

    const struct admission_hook *hook = &admission_hooks()[(uint8_t)(bytes[0] - 'a') % HOOKS];
    char *body = arena_alloc(arena, len, 1);

    memcpy(body, bytes + 1, len - 1);
    int r = admission_review(arena, hook, &SETTINGS, body, len - 1, &answer, &err);
    if (r < 0) {
        REQUIRE((r == -ERROR_INVALID || r == -ERROR_TOO_LARGE) && err.message[0]);
        return;
    }
    heap_pause();
    /* Members that the webhook does not read may hold a key twice. */
    const cJSON *review;
    if (json_parse(arena, body, len - 1, &review, NULL) == 0)
        check_answer(arena, hook, json_get(review, "request"), &answer);
}
