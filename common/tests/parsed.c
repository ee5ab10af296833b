#include "common/tests/parsed.h"

#include "common/base/buf.h"
#include "common/json/yaml.h"
#include "common/tests/suite.h"

#define MAX_FILE ((size_t)1 << 20)

const cJSON *parsed(struct arena *arena, const char *text)
{
    const cJSON *json = NULL;
    struct error err = { 0 };
    int r = json_parse(arena, text, strlen(text), &json, &err);

    ck_assert_msg(r == 0, "%s: %s", text, err.message);
    return json;
}

const cJSON *parsed_yaml_file(struct arena *arena, const char *path)
{
    const cJSON *json = NULL;
    struct error err = { 0 };
    struct buf text = BUF_INIT(MAX_FILE);
    char chunk[4096];
    size_t len;
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "cannot open %s: run the tests from the top of the repository",
                  path);
    while ((len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        ck_assert(buf_append(&text, chunk, len));
    ck_assert_int_eq(fclose(file), 0);

    int r = yaml_parse(arena, buf_string(&text), text.len, &json, &err);
    buf_release(&text);
    ck_assert_msg(r == 0, "%s: %s", path, err.message);
    return json;
}

void expect_json_linked(const cJSON *container)
{
    const cJSON *before = NULL;

    json_for_each (item, container) {
        if (before)
            ck_assert_ptr_eq(item->prev, before);
        before = item;
        expect_json_linked(item);
    }
    if (before)
        ck_assert_ptr_eq(container->child->prev, before);
}
