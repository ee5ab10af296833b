#include "webhook/tests/review_files.h"

#include <glob.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"

#define FOLDER "webhook/tests/reviews/"
#define REQUEST_SUFFIX ".request.json"
#define EXPECTED_SUFFIX ".expected.json"

static glob_t found;

static const char *read_whole(struct arena *arena, const char *path, size_t *ret_len)
{
    CLEANUP(buf_releasep) struct buf text = BUF_INIT(ADMISSION_MAX_BODY);
    char chunk[4096];
    size_t len;
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "cannot open %s", path);
    while ((len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        ck_assert(buf_append(&text, chunk, len));
    ck_assert_int_eq(fclose(file), 0);
    *ret_len = text.len;

    char *copy = arena_alloc(arena, text.len + 1, 1);
    if (text.len)
        memcpy(copy, text.data, text.len);
    return copy;
}

static const struct admission_hook *find_hook(const char *folder, size_t len)
{
    for (const struct admission_hook *hook = admission_hooks(); hook->path; hook++) {
        const char *kind = strrchr(hook->path, '-');
        size_t verb_len = strcspn(hook->path + 1, "-");

        if (len == verb_len + strlen(kind) && strncmp(folder, hook->path + 1, verb_len) == 0 &&
            strncmp(folder + verb_len, kind, strlen(kind)) == 0)
            return hook;
    }
    return NULL;
}

struct review_file review_file_read(struct arena *arena, size_t index)
{
    const char *path = found.gl_pathv[index];
    const char *relative = path + strlen(FOLDER);
    size_t name_len = strlen(relative) - strlen(REQUEST_SUFFIX);
    struct review_file file = { .name = arena_strndup(arena, relative, name_len) };
    const char *expected_path = arena_printf(arena, FOLDER "%s" EXPECTED_SUFFIX, file.name);
    size_t len;
    const char *expected = read_whole(arena, expected_path, &len);

    file.hook = find_hook(file.name, strcspn(file.name, "/"));
    ck_assert_msg(file.hook != NULL, "%s: no such hook", file.name);
    file.body = read_whole(arena, path, &file.body_len);
    file.expected = parsed(arena, expected);
    return file;
}

size_t review_files_find(void)
{
    return glob(FOLDER "*/*" REQUEST_SUFFIX, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
}

void review_files_forget(void)
{
    globfree(&found);
}

/* --- what is expected ------------------------------------------------------------------------- */

static void check_same(struct arena *arena, const char *name, const char *what,
                       const cJSON *expected, const cJSON *actual)
{
    ck_assert_msg(json_equal(expected, actual), "%s: %s\nexpected %s\n but was %s", name, what,
                  json_text(arena, expected, NULL), json_text(arena, actual, NULL));
}

static const cJSON *patch_of(struct arena *arena, const struct review_file *file,
                             const cJSON *response)
{
    const char *text = json_string(json_get(response, "patch"), NULL);
    size_t len;

    ck_assert_msg(
        str_equal(json_string(json_get(response, "patchType"), NULL), text ? "JSONPatch" : NULL),
        "%s: patchType", file->name);
    return text ? parsed(arena, base64_decode(arena, text, strlen(text), &len)) : NULL;
}

/* Go: "path: message" of each, several in brackets. */
static const char *message_of(struct arena *arena, const struct review_file *file,
                              const cJSON *request, const cJSON *causes)
{
    const char *name = json_string(json_path(request, "object", "metadata", "name", NULL), "");
    const char *text = "";

    json_for_each (cause, causes)
        text = arena_printf(arena, "%s%s%s: %s", text, *text ? ", " : "",
                            json_string(json_get(cause, "field"), ""),
                            json_string(json_get(cause, "message"), ""));
    return arena_printf(arena, "%s.%s \"%s\" is invalid: %s%s%s", file->hook->admission->kind->kind,
                        file->hook->admission->kind->group, name, json_len(causes) > 1 ? "[" : "",
                        text, json_len(causes) > 1 ? "]" : "");
}

static void check_refusal(struct arena *arena, const struct review_file *file, const cJSON *request,
                          const cJSON *status)
{
    const cJSON *causes = json_get(file->expected, "causes");

    ck_assert_msg(json_int(json_get(status, "code"), 0) == 422, "%s: code", file->name);
    ck_assert_msg(str_equal(json_string(json_get(status, "reason"), ""), "Invalid"), "%s: reason",
                  file->name);
    check_same(arena, file->name, "causes", causes, json_path(status, "details", "causes", NULL));
    ck_assert_str_eq(json_string(json_get(status, "message"), ""),
                     message_of(arena, file, request, causes));
}

static void check_review(struct arena *arena, const struct review_file *file, const char *body)
{
    const cJSON *review = parsed(arena, body);
    const cJSON *response = json_get(review, "response");
    const cJSON *request = json_get(parsed(arena, file->body), "request");
    bool allowed = json_bool(json_get(file->expected, "allowed"), false);

    ck_assert_str_eq(json_string(json_get(review, "apiVersion"), ""), "admission.k8s.io/v1");
    ck_assert_str_eq(json_string(json_get(review, "kind"), ""), "AdmissionReview");
    check_same(arena, file->name, "uid", json_get(request, "uid"), json_get(response, "uid"));
    ck_assert_msg(json_bool(json_get(response, "allowed"), !allowed) == allowed,
                  "%s: expected %s, but was %s", file->name, allowed ? "allowed" : "refused", body);
    check_same(arena, file->name, "warnings", json_get(file->expected, "warnings"),
               json_get(response, "warnings"));
    check_same(arena, file->name, "patch", json_get(file->expected, "patch"),
               patch_of(arena, file, response));
    if (allowed)
        ck_assert_msg(!json_get(response, "status"), "%s: a status", file->name);
    else
        check_refusal(arena, file, request, json_get(response, "status"));
}

void review_check(struct arena *arena, const struct review_file *file, int code,
                  const char *content_type, const char *body, size_t len)
{
    const char *text = arena_strndup(arena, body, len);

    ck_assert_msg(code == (int)json_int(json_get(file->expected, "code"), 0), "%s: %d %s",
                  file->name, code, text);
    /* what tests plant as a key is in no answer */
    ck_assert_msg(!strstr(text, "planted-key"), "%s: %s", file->name, text);
    if (code == 200) {
        ck_assert_str_eq(content_type, "application/json");
        check_review(arena, file, text);
    } else {
        ck_assert_msg(
            str_equal(text, arena_printf(arena, "%s\n",
                                         json_string(json_get(file->expected, "error"), ""))),
            "%s: %s", file->name, text);
    }
}

void review_files_post(struct tls_client *client, unsigned port, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        const struct review_file file = review_file_read(arena, i);
        struct tls_reply reply = tls_client_post(
            client, arena, port, arena_printf(arena, "%s?timeout=5s", file.hook->path), file.body,
            file.body_len);

        review_check(arena, &file, reply.status, reply.content_type, reply.body, reply.body_len);
    }
}
