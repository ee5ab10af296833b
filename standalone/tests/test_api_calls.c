/* Calls, one a line, and what the API answers: standalone/tests/calls, whose README.md says how they are written.
 * Each case begins with an empty store. */
#include <assert.h>
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/alloc.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "standalone/tests/api_fixture.h"

#define FILES "standalone/tests/calls/*.calls"
#define MAX_CASES 400
#define ARROW " -> "

/* Of all files. */
static struct {
    size_t file; /* by its place in `files` */
    char *name;
} cases[MAX_CASES];
static size_t cases_len;
static glob_t files;

/* Of the case that runs. */
static const char *file;
static int line_number;
static struct map *names;       /* of `let` */
static struct api_watch *watch; /* the last one that was opened */

#define expect(what, ...)                                                                          \
    ck_assert_msg(what, "%s:%d: %s", file, line_number, arena_printf(test_arena, __VA_ARGS__))

/* --- words ------------------------------------------------------------------------------------ */

/* A star stands for any text. */
static bool matches(const char *text, const char *pattern)
{
    for (; *pattern != '*'; text++, pattern++) {
        if (*text != *pattern)
            return false;
        if (!*text)
            return true;
    }
    do {
        if (matches(text, pattern + 1))
            return true;
    } while (*text++);
    return false;
}

/* With the values of names: $name; what is no name stays. */
static char *with_values(const char *text)
{
    const char *ret = "";

    for (const char *dollar; (dollar = strchr(text, '$')); text = dollar) {
        size_t len = 1;

        while (isalnum((unsigned char)dollar[len]))
            len++;
        const char *value = map_get(names, arena_strndup(test_arena, dollar + 1, len - 1));
        ret = arena_printf(test_arena, "%s%.*s%s", ret, (int)(dollar - text), text,
                           value ? value : arena_strndup(test_arena, dollar, len));
        dollar += len;
    }
    return arena_printf(test_arena, "%s%s", ret, text);
}

/* Cuts the first word off: *rest is what is behind it and its blanks. */
static char *cut_word(char **rest)
{
    char *word = *rest + strspn(*rest, " ");
    size_t len = strcspn(word, " ");

    *rest = word + len;
    if (**rest) {
        **rest = '\0';
        *rest += 1 + strspn(*rest + 1, " ");
    }
    return word;
}

static int number_of(const char *text)
{
    int64_t number;

    expect(str_to_int64(text, &number), "'%s' is no number", text);
    return (int)number;
}

static void set_name(const char *name, const char *value)
{
    expect(value, "nothing for '%s'", name);
    map_set(names, name, (void *)(uintptr_t)value);
}

/* --- what was answered ------------------------------------------------------------------------ */

static const cJSON *answer(void)
{
    expect(api_answer.body && api_answer.body[0] == '{', "no JSON: %s",
           api_answer.body ? api_answer.body : "a watch");
    return parsed(test_arena, api_answer.body);
}

/* ".metadata.finalizers.0" */
static const cJSON *member_at(char *path)
{
    const cJSON *json = answer();
    char *rest = NULL;

    for (char *name = strtok_r(path, ".", &rest); name; name = strtok_r(NULL, ".", &rest))
        json = isdigit((unsigned char)*name) ? cJSON_GetArrayItem(json, number_of(name))
                                             : json_get(json, name);
    return json;
}

static const char *words_of(const cJSON *list, const char *outer, const char *first,
                            const char *second)
{
    const char *ret = "";

    json_for_each (item, list) {
        const cJSON *object = outer ? json_get(item, outer) : item;

        ret = arena_printf(test_arena, "%s%s%s", ret, *ret ? " " : "",
                           json_get_string(object, first));
        if (second)
            ret = arena_printf(test_arena, "%s: %s", ret, json_get_string(object, second));
    }
    return ret;
}

static const char *refusal_said(void)
{
    const cJSON *status = answer();

    expect(str_equal(json_get_string(status, "kind"), "Status") &&
               str_equal(json_get_string(status, "apiVersion"), "v1") &&
               json_int(json_get(status, "code"), 0) == api_answer.status,
           "no Status of %d: %s", api_answer.status, api_answer.body);
    return arena_printf(test_arena, "%s: %s", json_get_string(status, "reason"),
                        json_get_string(status, "message"));
}

static const char *next_event(void)
{
    const char *line = ".";
    size_t len;

    expect(watch, "no watch is open");
    return api_watch_next(watch, test_arena, &line, &len) < 0 ? "END" : line;
}

/* NULL: it is absent. */
static const char *subject_of(char *subject)
{
    if (subject[0] == '.') {
        const cJSON *json = member_at(subject);

        return cJSON_IsString(json) ? json->valuestring : json ? text_of(json) : NULL;
    }
    if (str_has_prefix(subject, "warning"))
        return api_answer.warnings[number_of(subject + strlen("warning"))];
    if (str_equal(subject, "body"))
        return api_answer.body;
    if (str_equal(subject, "items"))
        return words_of(json_get(answer(), "items"), "metadata", "name", NULL);
    if (str_equal(subject, "causes"))
        return words_of(json_path(answer(), "details", "causes", NULL), NULL, "field", "message");
    if (str_equal(subject, "retry"))
        return arena_printf(test_arena, "%u", (unsigned)api_answer.retry_after_s);
    expect(str_equal(subject, "event"), "'%s' is nothing to look at", subject);
    return next_event();
}

/* "SUBJECT [not] PATTERN", "SUBJECT absent", "SUBJECT has NUMBER", "let NAME SUBJECT" */
static void check_answer(char *text)
{
    char *subject = cut_word(&text);

    if (str_equal(subject, "let")) {
        const char *name = cut_word(&text);

        set_name(name, subject_of(text));
        return;
    }
    if (str_has_prefix(text, "has ")) {
        size_t len = json_len(member_at(subject));

        expect((int)len == number_of(text + strlen("has ")), "there are %zu", len);
        return;
    }

    bool unlike = str_has_prefix(text, "not "), alike;
    const char *pattern = unlike ? text + strlen("not ") : text;
    bool is_object = subject[0] == '.' && pattern[0] == '{';
    const char *seen = subject_of(subject);

    if (!seen || str_equal(pattern, "absent"))
        alike = !seen && str_equal(pattern, "absent");
    else if (is_object)
        alike = json_equal(parsed(test_arena, seen), parsed(test_arena, pattern));
    else
        alike = matches(seen, pattern);
    expect(alike != unlike, "it is %s", seen ? seen : "absent");
}

/* --- calls ------------------------------------------------------------------------------------ */

static const char *type_of(const char *type)
{
    static const char *const TYPES[][2] = { { "merge", "merge-patch+json" },
                                            { "jsonpatch", "json-patch+json" },
                                            { "strategic", "strategic-merge-patch+json" },
                                            { "apply", "apply-patch+yaml" } };

    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        if (str_equal(TYPES[i][0], type))
            return TYPES[i][1];
    }
    return type;
}

/* Sets the answer by which the server refuses a request before it reads the body; status 0: it reads the body. */
static void admit(const char *method, char *path)
{
    char *query = strchr(path, '?');
    struct api_request request = { .method = method, .path = path, .query = "", .user = &api_user };

    if (query) {
        *query = '\0';
        request.query = query + 1;
    }
    ck_assert_int_eq(api_admit(api, test_arena, &request, &api_answer), !api_answer.status);
}

/* Cuts the answer off: what is behind the arrow; "" without one. */
static char *cut_answer(char *text)
{
    for (char *at = text; (at = strstr(at, ARROW)); at++) {
        if (isdigit((unsigned char)at[strlen(ARROW)])) {
            *at = '\0';
            return at + strlen(ARROW);
        }
    }
    return text + strlen(text);
}

/* "METHOD[:TYPE] PATH [BODY] -> STATUS [PATTERN]"; the pattern is of "Reason: message". */
static void call(char *text)
{
    char *said = cut_answer(text), *method = cut_word(&text), *type = strchr(method, ':');

    if (type)
        *type++ = '\0';

    char *path = cut_word(&text);
    int status = number_of(cut_word(&said));

    api_answer = (struct api_reply){ .status = 0 };
    if (str_equal(method, "ADMIT"))
        admit(type, path);
    else
        api_try(method, path, type ? type_of(type) : "json", *text ? text : NULL);
    expect(api_answer.status == status, "%d: %s", api_answer.status,
           api_answer.body ? api_answer.body : "a watch");
    if (*said)
        expect(matches(refusal_said(), said), "%s", refusal_said());
    if (api_answer.watch) {
        api_watch_close(watch);
        watch = api_answer.watch;
    }
}

static void become(char *text)
{
    api_user.name = cut_word(&text);
    api_user.role = ROLE_NONE;
    while (api_user.role < ROLES && !str_equal(ROLE_NAMES[api_user.role], text))
        api_user.role++;
    expect(api_user.role < ROLES, "'%s' is no role", text);
}

static void run_line(const char *line)
{
    char *text = with_values(line), *whole = with_values(line), *word;

    if (text[0] == ' ') {
        check_answer(text);
        return;
    }
    word = cut_word(&text);
    if (str_equal(word, "let")) {
        word = cut_word(&text);
        set_name(word, text);
    } else if (str_equal(word, "accept")) {
        api_accept = *text ? text : NULL;
    } else if (str_equal(word, "as")) {
        become(text);
    } else if (str_equal(word, "collect")) {
        api_collect();
    } else if (str_equal(word, "gone")) {
        await_gone(text);
    } else {
        call(whole);
    }
}

/* --- files ------------------------------------------------------------------------------------ */

#define CASE "== "

/* Blank lines and comments are left out. */
static void read_lines(const char *path, void (*run)(void *ctx, const char *line), void *ctx)
{
    FILE *stream = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    assert(stream);
    for (line_number = 1; (len = getline(&line, &cap, stream)) > 0; line_number++) {
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        if (*line && *line != '#')
            run(ctx, line);
    }
    free(line);
    (void)fclose(stream);
}

struct running {
    const char *name;
    bool runs; /* the head of the file, and the case */
};

static void run_if_wanted(void *ctx, const char *line)
{
    struct running *running = ctx;

    if (str_has_prefix(line, CASE))
        running->runs = str_equal(line + strlen(CASE), running->name);
    else if (running->runs)
        run_line(line);
}

START_TEST(each_call_is_answered_as_it_says)
{
    struct running running = { .name = cases[_i].name, .runs = true };

    names = map_create(NULL);
    file = files.gl_pathv[cases[_i].file];
    read_lines(file, run_if_wanted, &running);
    api_watch_close(watch);
    map_destroy(names);
}
END_TEST

static void find_case(void *ctx, const char *line)
{
    if (!str_has_prefix(line, CASE))
        return;
    assert(cases_len < MAX_CASES);
    cases[cases_len].file = *(size_t *)ctx;
    cases[cases_len++].name = xstrdup(line + strlen(CASE));
}

int main(void)
{
    Suite *suite = suite_create("api calls");
    TCase *all = tcase_create("calls");

    if (glob(FILES, 0, NULL, &files) != 0)
        return EXIT_FAILURE; /* run from another folder than the top of the repository */
    for (size_t i = 0; i < files.gl_pathc; i++)
        read_lines(files.gl_pathv[i], find_case, &i);
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, api_setup, api_teardown);
    tcase_add_loop_test(all, each_call_is_answered_as_it_says, 0, (int)cases_len);
    suite_add_tcase(suite, all);

    int r = suite_run(suite);

    while (cases_len)
        free(cases[--cases_len].name);
    globfree(&files);
    return r;
}
