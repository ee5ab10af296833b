/* A pull as a table: what it asks, what it is answered, and how it ends. */
#include "controller/registry/pull_plan.h"

#include <string.h>

#include "common/base/digest.h"
#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

#define OCI "application/vnd.oci.image.manifest.v1+json"
#define INDEX_TYPE "application/vnd.oci.image.index.v1+json"
#define MAX_LINES 16
#define MODULE_BYTES 1000
#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define MANIFEST                                                                                   \
    "{\"mediaType\":\"" OCI                                                                        \
    "\",\"layers\":[{\"mediaType\":\"application/wasm\",\"digest\":\"sha256:" HEX_A                \
    "\",\"size\":1000}]}"
#define BEARER                                                                                     \
    "WWW-Authenticate: Bearer realm=\"https://auth.example/token?x=1\",service=\"r "               \
    "e\",scope=\"s:1\"\n"
#define TOKEN_URL "GET https://auth.example/token?x=1&service=r%20e&scope=s:1"
#define BASIC "WWW-Authenticate: Basic realm=\"x\"\n"
#define LOGIN_1 "dTE6cDE="
#define LOGIN_2 "dTI6cDI="

/* <M> is the digest of MANIFEST, <I> that of the index below. */
#define INDEX                                                                                      \
    "{\"mediaType\":\"" INDEX_TYPE "\",\"manifests\":[{\"digest\":\"<M>\",\"size\":9,"             \
    "\"platform\":{\"os\":\"wasip1\",\"architecture\":\"wasm\"}}]}"

struct line {
    /* "<method> <path below /v2/acme/add/, or URL>[ as <authorization>][ from <offset>]" */
    const char *asked;
    int status; /* 0: no whole reply */
    const char *headers, *body;
    int64_t file_bytes;
    bool differs, is_no_wasm; /* the file */
};

struct script {
    const char *name;
    enum pull_aim aim;
    size_t logins;
    bool is_plain, by_index;
    struct line lines[MAX_LINES];
    enum pull_next end;
    enum reason reason;
    const char *message; /* a part */
};

TEST_GROUP("pull plan", arena_set_up, arena_tear_down);

/* A reply, and one to a request for the module. */
#define LINE(asks, replies, lines, text)                                                           \
    {                                                                                              \
        .asked = (asks), .status = (replies), .headers = lines, .body = (text)                     \
    }
#define FILE_LINE(asks, replies, bytes, is_other, is_text)                                         \
    {                                                                                              \
        .asked = (asks), .status = (replies), .headers = "", .body = "", .file_bytes = (bytes),    \
        .differs = (is_other), .is_no_wasm = (is_text)                                             \
    }
#define WHOLE FILE_LINE("GET blobs/sha256:" HEX_A, 200, MODULE_BYTES, false, false)
#define SCRIPT(title, aims, count, plain, index, ends, why, text, ...)                             \
    {                                                                                              \
        .name = (title), .aim = (aims), .logins = (count), .is_plain = (plain),                    \
        .by_index = (index), .lines = { __VA_ARGS__ }, .end = (ends), .reason = (why),             \
        .message = (text)                                                                          \
    }
#define DIGEST_A "Docker-Content-Digest: sha256:" HEX_A "\n"

static const struct script SCRIPTS[] = {
    SCRIPT("tag by the header", PULL_DIGEST, 0, false, false, PULL_DONE, 0, NULL,
           LINE("HEAD manifests/1", 200, DIGEST_A, "")),
    SCRIPT("tag by the body", PULL_DIGEST, 0, false, false, PULL_DONE, 0, NULL,
           LINE("HEAD manifests/1", 200, "Docker-Content-Digest: sha256:0\n", ""),
           LINE("GET manifests/1", 200, "", MANIFEST)),
    SCRIPT("tag without HEAD", PULL_DIGEST, 0, false, false, PULL_DONE, 0, NULL,
           LINE("HEAD manifests/1", 405, "", ""), LINE("GET manifests/1", 200, "", MANIFEST)),
    SCRIPT("tag that is a page", PULL_DIGEST, 0, false, false, PULL_FAILED, REASON_MODULE_INVALID,
           "'r.example/acme/add' has a manifest that cannot be read",
           LINE("HEAD manifests/1", 200, "", ""),
           LINE("GET manifests/1", 200, "Content-Type: text/html\n", "<html>")),
    SCRIPT("tag that is not there", PULL_DIGEST, 0, false, false, PULL_FAILED,
           REASON_MODULE_NOT_FOUND, "with the tag or digest 1 is not",
           LINE("HEAD manifests/1", 404, "", "")),
    SCRIPT("registry is away", PULL_DIGEST, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "cannot be pulled: no reply",
           LINE("HEAD manifests/1", 0, "", "")),
    SCRIPT("registry is ill", PULL_DIGEST, 0, false, false, PULL_LATER, REASON_REGISTRY_UNAVAILABLE,
           "answers with status 503", LINE("HEAD manifests/1", 503, "", "")),
    SCRIPT("registry is busy", PULL_DIGEST, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "answers with status 429",
           LINE("HEAD manifests/1", 429, "", "")),
    SCRIPT("redirect that is not followed", PULL_DIGEST, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "answers with status 301",
           LINE("HEAD manifests/1", 301, "", "")),
    SCRIPT("known module", PULL_KNOWN, 0, false, false, PULL_DONE, 0, NULL,
           LINE("HEAD manifests/<M>", 200, "", ""), WHOLE),
    SCRIPT("known module without HEAD", PULL_KNOWN, 0, false, false, PULL_DONE, 0, NULL,
           LINE("HEAD manifests/<M>", 405, "", ""), LINE("GET manifests/<M>", 200, "", MANIFEST),
           WHOLE),
    SCRIPT("known module is refused", PULL_KNOWN, 0, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 401 without credentials",
           LINE("HEAD manifests/<M>", 401, BASIC, "")),
    SCRIPT("known module is refused with its blob", PULL_KNOWN, 0, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 401 without credentials",
           LINE("HEAD manifests/<M>", 200, "", ""),
           LINE("GET blobs/sha256:" HEX_A, 401, BASIC, "")),
    SCRIPT("known module whose blob is not there", PULL_KNOWN, 0, false, false, PULL_FAILED,
           REASON_MODULE_NOT_FOUND, "with the blob sha256:" HEX_A,
           LINE("HEAD manifests/<M>", 200, "", ""), LINE("GET blobs/sha256:" HEX_A, 404, "", "")),
    SCRIPT("known module is refused to both", PULL_KNOWN, 2, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 403 to all credentials",
           LINE("HEAD manifests/<M>", 401, BASIC, ""),
           LINE("HEAD manifests/<M> as Basic " LOGIN_1, 401, BASIC, ""),
           LINE("HEAD manifests/<M> as Basic " LOGIN_2, 403, "", "")),
    SCRIPT("module", PULL_MODULE, 0, false, false, PULL_DONE, 0, NULL,
           LINE("GET manifests/<M>", 200, "", MANIFEST), WHOLE),
    SCRIPT("module by an index", PULL_MODULE, 0, false, true, PULL_DONE, 0, NULL,
           LINE("GET manifests/<I>", 200, "", INDEX), LINE("GET manifests/<M>", 200, "", MANIFEST),
           WHOLE),
    SCRIPT("index in an index", PULL_MODULE, 0, false, true, PULL_FAILED, REASON_MODULE_INVALID,
           "has another manifest than its digest", LINE("GET manifests/<I>", 200, "", INDEX),
           LINE("GET manifests/<M>", 200, "", INDEX)),
    SCRIPT("manifest of other bytes", PULL_MODULE, 0, false, false, PULL_FAILED,
           REASON_MODULE_INVALID, "has another manifest than its digest",
           LINE("GET manifests/<M>", 200, "", MANIFEST " ")),
    SCRIPT("manifest that is not there", PULL_MODULE, 0, false, false, PULL_FAILED,
           REASON_MODULE_NOT_FOUND,
           "with the tag or digest sha256:", LINE("GET manifests/<M>", 404, "", "")),
    SCRIPT("blob that is not there", PULL_MODULE, 0, false, false, PULL_FAILED,
           REASON_MODULE_NOT_FOUND, "with the blob sha256:" HEX_A,
           LINE("GET manifests/<M>", 200, "", MANIFEST),
           LINE("GET blobs/sha256:" HEX_A, 404, "", "")),
    SCRIPT("blob of other bytes", PULL_MODULE, 0, false, false, PULL_FAILED, REASON_MODULE_INVALID,
           "sends other bytes than its digest", LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 200, MODULE_BYTES, true, false)),
    SCRIPT("blob that is no module", PULL_MODULE, 0, false, false, PULL_FAILED,
           REASON_MODULE_INVALID, "has a layer that is not WebAssembly",
           LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 200, MODULE_BYTES, false, true)),
    SCRIPT("blob that is longer", PULL_MODULE, 0, false, false, PULL_FAILED, REASON_MODULE_INVALID,
           "sends more than the 1000 bytes", LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 0, MODULE_BYTES + 1, false, false)),
    SCRIPT("blob that is shorter", PULL_MODULE, 0, false, false, PULL_FAILED, REASON_MODULE_INVALID,
           "sends 10 of the 1000 bytes", LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 200, 10, false, false)),
    SCRIPT("blob goes on where it broke off", PULL_MODULE, 0, false, false, PULL_DONE, 0, NULL,
           LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 0, 10, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 10", 0, 600, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 600", 206, MODULE_BYTES, false, false)),
    SCRIPT("blob begins again where ranges are refused", PULL_MODULE, 0, false, false, PULL_DONE, 0,
           NULL, LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 0, 10, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 10", 416, 10, false, false), WHOLE),
    SCRIPT("blob that breaks off too often", PULL_MODULE, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "breaks off after 6 of 1000 bytes: no reply",
           LINE("GET manifests/<M>", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A, 0, 1, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 1", 0, 2, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 2", 0, 3, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 3", 0, 4, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 4", 0, 5, false, false),
           FILE_LINE("GET blobs/sha256:" HEX_A " from 5", 0, 6, false, false)),
    SCRIPT("credentials are not sent unless asked for", PULL_MODULE, 2, false, false, PULL_DONE, 0,
           NULL, LINE("GET manifests/<M>", 200, "", MANIFEST), WHOLE),
    SCRIPT(
        "second credentials of basic", PULL_MODULE, 2, false, false, PULL_DONE, 0, NULL,
        LINE("GET manifests/<M>", 401, BASIC, ""),
        LINE("GET manifests/<M> as Basic " LOGIN_1, 401, BASIC, ""),
        LINE("GET manifests/<M> as Basic " LOGIN_2, 200, "", MANIFEST),
        FILE_LINE("GET blobs/sha256:" HEX_A " as Basic " LOGIN_2, 200, MODULE_BYTES, false, false)),
    SCRIPT("refusal without a challenge", PULL_MODULE, 1, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 403 to all credentials",
           LINE("GET manifests/<M>", 403, "", ""),
           LINE("GET manifests/<M> as Basic " LOGIN_1, 403, "", "")),
    SCRIPT("token", PULL_MODULE, 1, false, false, PULL_DONE, 0, NULL,
           LINE("GET manifests/<M>", 401, BASIC BEARER, ""),
           LINE(TOKEN_URL " as Basic " LOGIN_1, 200, "", "{\"token\":\"t1\"}"),
           LINE("GET manifests/<M> as Bearer t1", 200, "", MANIFEST),
           FILE_LINE("GET blobs/sha256:" HEX_A " as Bearer t1", 200, MODULE_BYTES, false, false)),
    SCRIPT("token that expires early is renewed once", PULL_MODULE, 0, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 401", LINE("GET manifests/<M>", 401, BEARER, ""),
           LINE(TOKEN_URL, 200, "", "{\"access_token\":\"t1\"}"),
           LINE("GET manifests/<M> as Bearer t1", 200, "", MANIFEST),
           LINE("GET blobs/sha256:" HEX_A " as Bearer t1", 401, BEARER, ""),
           LINE(TOKEN_URL, 200, "", "{\"token\":\"t2\"}"),
           LINE("GET blobs/sha256:" HEX_A " as Bearer t2", 401, BEARER, "")),
    SCRIPT("token server refuses the first, and takes none", PULL_MODULE, 1, false, false,
           PULL_FAILED, REASON_MODULE_FORBIDDEN, "status 403 to all credentials",
           LINE("GET manifests/<M>", 401, BEARER, ""),
           LINE(TOKEN_URL " as Basic " LOGIN_1, 401, "", ""),
           LINE(TOKEN_URL, 200, "", "{\"token\":\"t1\"}"),
           LINE("GET manifests/<M> as Bearer t1", 403, "", "")),
    SCRIPT("token server is ill", PULL_MODULE, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "the token server answers with status 502",
           LINE("GET manifests/<M>", 401, BEARER, ""), LINE(TOKEN_URL, 502, "", "")),
    SCRIPT("token server gives no token", PULL_MODULE, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "gives no token",
           LINE("GET manifests/<M>", 401, BEARER, ""),
           LINE(TOKEN_URL, 200, "", "{\"token\":\"a\\nb: c\"}")),
    SCRIPT("token server gives a page", PULL_MODULE, 0, false, false, PULL_LATER,
           REASON_REGISTRY_UNAVAILABLE, "does not answer with JSON",
           LINE("GET manifests/<M>", 401, BEARER, ""), LINE(TOKEN_URL, 200, "", "<html>")),
    SCRIPT("token server without TLS gets nothing", PULL_MODULE, 1, false, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 401",
           LINE("GET manifests/<M>", 401,
                "WWW-Authenticate: Bearer realm=\"http://evil.example/\"\n", "")),
    SCRIPT(
        "token server without TLS of a registry without TLS", PULL_MODULE, 1, true, false,
        PULL_LATER, REASON_REGISTRY_UNAVAILABLE, "no reply",
        LINE("GET manifests/<M>", 401, "www-authenticate:Bearer realm=http://a.example/t\n", ""),
        LINE("GET http://a.example/t?scope=repository:acme/add:pull as Basic " LOGIN_1, 0, "", "")),
    SCRIPT("token server by a file", PULL_MODULE, 0, true, false, PULL_FAILED,
           REASON_MODULE_FORBIDDEN, "status 401",
           LINE("GET manifests/<M>", 401, "WWW-Authenticate: Bearer realm=\"file:///etc/passwd\"\n",
                "")),
};

static const char *digest_of(const char *text)
{
    char hex[SHA256_HEX_LEN];

    return arena_printf(arena, "sha256:%s", sha256_hex(text, strlen(text), hex));
}

/* The text with <M> and <I> replaced. */
static const char *filled(const char *text)
{
    static const struct {
        const char *mark, *of;
    } MARKS[] = { { "<M>", MANIFEST }, { "<I>", INDEX } };

    for (size_t i = 0; i < ARRAY_LEN(MARKS); i++) {
        const char *at = strstr(text, MARKS[i].mark);

        if (at)
            text = arena_printf(arena, "%.*s%s%s", (int)(at - text), text,
                                digest_of(i ? filled(INDEX) : MANIFEST), at + 3);
    }
    return text;
}

static const char *described(const struct pull_request *request)
{
    const char *url = request->url;
    const char *base = "https://r.example/v2/acme/add/", *plain = "http://r.example/v2/acme/add/";

    url += str_has_prefix(url, base)    ? strlen(base)
           : str_has_prefix(url, plain) ? strlen(plain)
                                        : 0;
    return arena_printf(
        arena, "%s %s%s%s%s%s", request->method, url, request->authorization ? " as " : "",
        request->authorization ? request->authorization : "", request->offset ? " from " : "",
        request->offset ? arena_printf(arena, "%d", (int)request->offset) : "");
}

static struct pull_target target_of(const struct script *script)
{
    static struct module_registry registry = { .prefix = "" };
    const char *digest =
        script->aim == PULL_DIGEST ? NULL : filled(script->by_index ? "<I>" : "<M>");

    registry.is_plain = script->is_plain;
    registry.url = script->is_plain ? "http://r.example" : "https://r.example";
    registry.host = registry.asked = "r.example";
    return (struct pull_target){
        .aim = script->aim,
        .registry = &registry,
        .reference = { "r.example", "acme/add", "r.example/acme/add", digest ? NULL : "1", digest },
        .logins = { { LOGIN_1, LOGIN_2 }, script->logins },
        .max_bytes = MODULE_BYTES,
        .known = { .digest = "sha256:" HEX_A, .bytes = MODULE_BYTES },
    };
}

static void answer(struct pull *pull, const struct line *line)
{
    const char *body = filled(line->body);
    bool is_whole = line->file_bytes == MODULE_BYTES;
    const struct pull_reply reply = {
        .status = line->status,
        .problem = line->status ? NULL : "no reply",
        .headers = line->headers,
        .body = body,
        .len = strlen(body),
        .file_bytes = line->file_bytes,
        .file_digest = !is_whole       ? NULL
                       : line->differs ? "sha256:0"
                                       : "sha256:" HEX_A,
        .file_is_wasm = is_whole && !line->is_no_wasm,
    };

    pull_take(pull, 0, &reply);
}

TEST_EACH(pull_asks_what_the_replies_lead_to, SCRIPTS)
{
    const struct script *script = &SCRIPTS[_i];
    const struct pull_target target = target_of(script);
    struct pull_request request;
    struct pull pull;

    pull_begin(&pull, arena, &target);
    for (const struct line *line = script->lines; line->asked; line++) {
        ck_assert_msg(pull_next(&pull, 0, &request) == PULL_ASK, "%s: %s", script->name,
                      pull.message);
        ck_assert_msg(str_equal(described(&request), filled(line->asked)),
                      "%s: asks '%s', not '%s'", script->name, described(&request),
                      filled(line->asked));
        answer(&pull, line);
    }
    ck_assert_msg(pull_next(&pull, 0, &request) == script->end, "%s: %s", script->name,
                  pull.message);
    ck_assert_int_eq(pull.reason, script->reason);
    if (script->message)
        ck_assert_msg(strstr(pull.message, script->message) != NULL, "%s: %s", script->name,
                      pull.message);
}

static void begin(struct pull *pull, size_t logins)
{
    const struct script script = { .aim = PULL_MODULE, .logins = logins };
    const struct pull_target target = target_of(&script);

    pull_begin(pull, arena, &target);
}

static void expect(struct pull *pull, int64_t now_ms, const char *asked)
{
    struct pull_request request;

    ck_assert_int_eq(pull_next(pull, now_ms, &request), PULL_ASK);
    ck_assert_str_eq(described(&request), filled(asked));
}

TEST(token_is_used_for_nine_tenths_of_its_life)
{
    struct pull pull;

    begin(&pull, 0);
    answer(&pull, &(struct line)LINE("", 401, BEARER, ""));
    expect(&pull, 0, TOKEN_URL);
    answer(&pull, &(struct line)LINE("", 200, "", "{\"token\":\"t\",\"expires_in\":100}"));
    expect(&pull, 89999, "GET manifests/<M> as Bearer t");
    expect(&pull, 90000, TOKEN_URL);
}

TEST(token_without_a_life_is_used_for_54_seconds)
{
    struct pull pull;

    begin(&pull, 0);
    answer(&pull, &(struct line)LINE("", 401, BEARER, ""));
    expect(&pull, 0, TOKEN_URL);
    answer(&pull, &(struct line)LINE("", 200, "", "{\"token\":\"t\",\"expires_in\":-5}"));
    expect(&pull, 53999, "GET manifests/<M> as Bearer t");
    expect(&pull, 54000, TOKEN_URL);
}

TEST(module_over_the_limit_is_not_asked_for_and_both_sizes_are_named)
{
    struct pull_request request;
    struct pull pull;

    begin(&pull, 0);
    pull.target.max_bytes = MODULE_BYTES - 1;
    answer(&pull, &(struct line)LINE("", 200, "", MANIFEST));
    ck_assert_int_eq(pull_next(&pull, 0, &request), PULL_FAILED);
    ck_assert_int_eq(pull.reason, REASON_MODULE_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(pull.message, "has 1000 bytes, --module-max-bytes allows 999"));
}

TEST(manifest_over_its_limit_is_invalid)
{
    struct pull_request request;
    struct pull pull;

    begin(&pull, 0);
    pull_take(&pull, 0,
              &(struct pull_reply){ .problem = "x", .is_too_large = true, .headers = "" });
    ck_assert_int_eq(pull_next(&pull, 0, &request), PULL_FAILED);
    ck_assert_int_eq(pull.reason, REASON_MODULE_INVALID);
}

TEST(retry_after_of_the_registry_is_kept)
{
    struct pull pull;

    begin(&pull, 0);
    pull_take(&pull, 0, &(struct pull_reply){ .status = 503, .headers = "", .retry_after_s = 77 });
    ck_assert_uint_eq(pull.retry_after_s, 77);
}

TEST(credentials_that_read_it_are_known)
{
    struct pull pull;

    begin(&pull, 2);
    ck_assert_ptr_null(authorization_login(&pull.authorization));
    answer(&pull, &(struct line)LINE("", 401, BASIC, ""));
    ck_assert_str_eq(authorization_login(&pull.authorization), LOGIN_1);
    answer(&pull, &(struct line)LINE("", 401, BASIC, ""));
    ck_assert_str_eq(authorization_login(&pull.authorization), LOGIN_2);
}

TEST(challenge_of_a_hundred_parameters_is_read_to_its_32nd)
{
    const char *challenge = "WWW-Authenticate: Bearer ";
    struct pull pull;

    for (int i = 0; i < 100; i++)
        challenge = arena_printf(arena, "%sp%d=\"%d\", ", challenge, i, i);
    challenge = arena_printf(arena, "%srealm=\"https://auth.example/\"\n", challenge);
    begin(&pull, 1);
    answer(&pull, &(struct line)LINE("", 401, challenge, ""));
    ck_assert_int_eq(pull.reason, REASON_MODULE_FORBIDDEN);
}

static const struct {
    int status;
    const char *range;
    int64_t offset;
    bool continues;
} RANGES[] = {
    { 206, "Content-Range: bytes 10-99/100\n", 10, true },
    { 206, "content-range: bytes 10-99/*\n", 10, true },
    { 206, "Content-Range: bytes 11-99/100\n", 10, false },
    { 206, "Content-Range: bytes 1-99/100\n", 10, false },
    { 206, "Content-Range: bytes -10\n", 10, false },
    { 206, "Content-Range: bytes 10\n", 10, false },
    { 206, "Content-Range: items 10-99/100\n", 10, false },
    { 206, "", 10, false },
    { 200, "Content-Range: bytes 10-99/100\n", 10, false },
};

TEST_EACH(body_goes_on_only_at_the_right_place, RANGES)
{
    ck_assert_int_eq(pull_continues(RANGES[_i].status, RANGES[_i].range, arena, RANGES[_i].offset),
                     RANGES[_i].continues);
}
