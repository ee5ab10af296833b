#include "common/base/alloc.h"
#include "common/base/buf.h"
#include "common/base/str.h"
#include "common/json/json_splitter.h"
#include "common/tests/suite.h"

#define MAX_PART 40

/* What came out, one line a part: "item {…}", "item too large (50)". */
static struct buf parts = BUF_INIT(1 << 20);
static int refuse_part = -1; /* the part function returns an error for this one */
static int part_count;

static int on_part(void *ctx, enum json_part part, const char *text, size_t len, struct error *err)
{
    static const char *const NAMES[] = { [JSON_PART_DOCUMENT] = "document",
                                         [JSON_PART_ITEM] = "item",
                                         [JSON_PART_ENVELOPE] = "envelope" };

    ck_assert_ptr_eq(ctx, &parts);
    if (part_count++ == refuse_part)
        return error_set(err, ERROR_CANCELED, "refused");
    if (text)
        ck_assert(buf_printf(&parts, "%s %.*s\n", NAMES[part], (int)len, text));
    else
        ck_assert(buf_printf(&parts, "%s too large (%zu)\n", NAMES[part], len));
    return 0;
}

/* Feeds in chunks, each in memory of its own so that the sanitizer sees a read beyond it. */
static int feed_chunks(struct json_splitter *splitter, const char *text, size_t len, size_t first,
                       size_t others, struct error *err)
{
    size_t chunk = first;
    int r = 0;

    for (size_t i = 0; r == 0 && i < len; i += chunk, chunk = others) {
        if (chunk > len - i)
            chunk = len - i;
        char *copy = xmalloc(chunk);
        memcpy(copy, text + i, chunk);
        r = json_splitter_feed(splitter, copy, chunk, err);
        free(copy);
    }
    return r;
}

struct example {
    enum json_split split;
    const char *text;
    const char *parts;
    const char *error; /* NULL: none */
};

static const struct example EXAMPLES[] = {
    { JSON_SPLIT_DOCUMENTS, "", "", NULL },
    { JSON_SPLIT_DOCUMENTS, " \r\n\t", "", NULL },
    { JSON_SPLIT_DOCUMENTS, "{}", "document {}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{\"a\":1}\n{\"b\":[{}]}\n",
      "document {\"a\":1}\ndocument {\"b\":[{}]}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{}{}{", "document {}\ndocument {}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{\"}\":\"]{\\\"}\\\\\"}{}",
      "document {\"}\":\"]{\\\"}\\\\\"}\ndocument {}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{\"\xc3\xa9\":\"\xf0\x9f\x98\x80\"}",
      "document {\"\xc3\xa9\":\"\xf0\x9f\x98\x80\"}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{\"half\":\"of it", "", NULL },
    { JSON_SPLIT_DOCUMENTS, "{} <html>", "document {}\n", "not a JSON object" },
    { JSON_SPLIT_DOCUMENTS, "{},{}", "document {}\n", "not a JSON object" },
    { JSON_SPLIT_DOCUMENTS, "[{}]", "", "not a JSON object" },
    { JSON_SPLIT_DOCUMENTS, "\"text\"", "", "not a JSON object" },
    { JSON_SPLIT_DOCUMENTS, "}", "", "not a JSON object" },
    /* at the limit, one beyond, and what follows it */
    { JSON_SPLIT_DOCUMENTS, "{\"a\":\"01234567890123456789012345678901\"}",
      "document {\"a\":\"01234567890123456789012345678901\"}\n", NULL },
    { JSON_SPLIT_DOCUMENTS, "{\"a\":\"01234567890123456789012345678901}\"}{}",
      "document too large (41)\ndocument {}\n", NULL },

    { JSON_SPLIT_LIST, "", "", NULL },
    { JSON_SPLIT_LIST, " {} \n", "envelope {}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":[]}", "envelope {\"items\":[]}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":null}", "envelope {\"items\":null}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":[{\"a\":1}, {\"b\":[\"x]\"]} ],\"metadata\":{\"c\":\"d\"}}",
      "item {\"a\":1}\nitem {\"b\":[\"x]\"]}\nenvelope {\"items\":[],\"metadata\":{\"c\":\"d\"}}\n",
      NULL },
    { JSON_SPLIT_LIST, "{ \"metadata\" : {\"items\":[1,{}]} , \"items\" : [ {} ] }",
      "item {}\nenvelope { \"metadata\" : {\"items\":[1,{}]} , \"items\" : [] }\n", NULL },
    /* not the key: a value, a longer, a shorter, an escaped one */
    { JSON_SPLIT_LIST, "{\"a\":\"items\",\"b\":[1]}", "envelope {\"a\":\"items\",\"b\":[1]}\n",
      NULL },
    { JSON_SPLIT_LIST, "{\"itemsx\":[1],\"item\":[2],\"xitems\":[3]}",
      "envelope {\"itemsx\":[1],\"item\":[2],\"xitems\":[3]}\n", NULL },
    { JSON_SPLIT_LIST, "{\"it\\\"ems\":[1]}", "envelope {\"it\\\"ems\":[1]}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":{\"x\":[1]}}", "envelope {\"items\":{\"x\":[1]}}\n", NULL },
    { JSON_SPLIT_LIST,
      "{\"items\":[{\"a\":\"012345678901234567890123456789012345\"},{}],\"kind\":\"List\"}",
      "item too large (44)\nitem {}\nenvelope {\"items\":[],\"kind\":\"List\"}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":[{},", "item {}\n", NULL },
    { JSON_SPLIT_LIST, "{\"items\":[null]}", "", "'items' holds something else than objects" },
    { JSON_SPLIT_LIST, "{\"items\":[{},[]]}", "item {}\n",
      "'items' holds something else than objects" },
    { JSON_SPLIT_LIST, "{\"items\":[,{}]}", "", "an item of 'items' is missing" },
    { JSON_SPLIT_LIST, "{\"items\":[{},]}", "item {}\n", "an item of 'items' is missing" },
    { JSON_SPLIT_LIST, "[]", "", "not a JSON object" },
    { JSON_SPLIT_LIST, "404 page not found", "", "not a JSON object" },
    { JSON_SPLIT_LIST, "{}{}", "envelope {}\n", "bytes after the end of the list" },

    { JSON_SPLIT_VALUES,
      "{\"items\":[{\"a\":[1,\"],}\"]} , 3,null,[],\"\\\"]\"],\"kind\":\"List\"}",
      "item {\"a\":[1,\"],}\"]} \nitem 3\nitem null\nitem []\nitem \"\\\"]\"\n"
      "envelope {\"items\":[],\"kind\":\"List\"}\n",
      NULL },
    { JSON_SPLIT_VALUES, "{\"items\":[ ]}", "envelope {\"items\":[]}\n", NULL },
    /* what is no JSON is for the parser to refuse */
    { JSON_SPLIT_VALUES, "{\"items\":[{} {}]}", "item {} {}\nenvelope {\"items\":[]}\n", NULL },
    { JSON_SPLIT_VALUES, "{\"items\":[1}}", "item 1\nenvelope {\"items\":[}}\n", NULL },
    { JSON_SPLIT_VALUES, "{\"items\":[1,}}", "item 1\n", "an item of 'items' is missing" },
    { JSON_SPLIT_VALUES, "{\"items\":[,1]}", "", "an item of 'items' is missing" },
    { JSON_SPLIT_VALUES, "{\"items\":[\"0123456789012345678901234567890123456789\"]}",
      "item too large (42)\nenvelope {\"items\":[]}\n", NULL },
    { JSON_SPLIT_VALUES, "{}{}", "envelope {}\n", "bytes after the end of the list" },
};

static void check_example(const struct example *example, size_t first, size_t others)
{
    struct error err = { 0 };
    struct json_splitter *splitter = json_splitter_create(MAX_PART, on_part, &parts);

    buf_clear(&parts);
    json_splitter_start(splitter, example->split);
    int r = feed_chunks(splitter, example->text, strlen(example->text), first, others, &err);
    ck_assert_str_eq(buf_string(&parts), example->parts);
    if (example->error) {
        ck_assert_int_eq(r, -ERROR_INVALID);
        ck_assert_str_eq(err.message, example->error);
        ck_assert_int_lt(json_splitter_feed(splitter, "{}", 2, &err), 0);
    } else {
        ck_assert_msg(r == 0, "%s", err.message);
    }
    json_splitter_destroy(splitter);
}

TEST_EACH(the_same_parts_come_out_in_chunks_of_every_size, EXAMPLES)
{
    for (size_t size = 1; size <= strlen(EXAMPLES[_i].text) + 1; size++)
        check_example(&EXAMPLES[_i], size, size);
    buf_release(&parts);
}

TEST_EACH(the_same_parts_come_out_when_cut_in_two_anywhere, EXAMPLES)
{
    for (size_t cut = 1; cut <= strlen(EXAMPLES[_i].text); cut++)
        check_example(&EXAMPLES[_i], cut, SIZE_MAX);
    buf_release(&parts);
}

TEST(an_error_of_the_part_function_ends_the_feed)
{
    struct error err = { 0 };
    struct json_splitter *splitter = json_splitter_create(MAX_PART, on_part, &parts);

    refuse_part = 1;
    json_splitter_start(splitter, JSON_SPLIT_DOCUMENTS);
    ck_assert_int_eq(json_splitter_feed(splitter, "{}{}{}", 6, &err), -ERROR_CANCELED);
    ck_assert_str_eq(buf_string(&parts), "document {}\n");
    ck_assert_int_lt(json_splitter_feed(splitter, "{}", 2, &err), 0);
    json_splitter_destroy(splitter);
    buf_release(&parts);
}

TEST(start_forgets_a_stream_that_broke_off)
{
    static const char *const BROKEN[] = { "{\"items\":[{\"a", "{\"items", "{\"items\":[{}],\"x\\",
                                          "nonsense" };

    for (size_t i = 0; i < ARRAY_LEN(BROKEN); i++) {
        struct error err = { 0 };
        struct json_splitter *splitter = json_splitter_create(MAX_PART, on_part, &parts);
        json_splitter_start(splitter, JSON_SPLIT_LIST);
        int r = json_splitter_feed(splitter, BROKEN[i], strlen(BROKEN[i]), &err);
        ck_assert_int_eq(r, i == 3 ? -ERROR_INVALID : 0);

        buf_clear(&parts);
        json_splitter_start(splitter, JSON_SPLIT_LIST);
        ck_assert_int_eq(json_splitter_feed(splitter, "{\"items\":[{}]}", 14, &err), 0);
        ck_assert_str_eq(buf_string(&parts), "item {}\nenvelope {\"items\":[]}\n");
        json_splitter_destroy(splitter);
    }
    buf_release(&parts);
}

TEST(an_envelope_over_its_limit_is_an_error)
{
    struct error err = { 0 };
    struct json_splitter *splitter = json_splitter_create(MAX_PART, on_part, &parts);
    char *blanks = xmalloc(JSON_MAX_ENVELOPE);
    memset(blanks, ' ', JSON_MAX_ENVELOPE);

    json_splitter_start(splitter, JSON_SPLIT_LIST);
    ck_assert_int_eq(json_splitter_feed(splitter, "{\"items\":[", 10, &err), 0);
    ck_assert_int_eq(json_splitter_feed(splitter, blanks, JSON_MAX_ENVELOPE, &err), 0);
    ck_assert_int_eq(json_splitter_feed(splitter, "]", 1, &err), 0);
    ck_assert_int_eq(json_splitter_feed(splitter, blanks, JSON_MAX_ENVELOPE - 11, &err), 0);
    ck_assert_int_eq(json_splitter_feed(splitter, blanks, 1, &err), -ERROR_TOO_LARGE);
    ck_assert_int_lt(json_splitter_feed(splitter, "}", 1, &err), 0);
    ck_assert_str_eq(buf_string(&parts), "");
    free(blanks);

    json_splitter_start(splitter, JSON_SPLIT_VALUES); /* as long as a part */
    ck_assert_int_eq(json_splitter_feed(splitter, "{\"a\":\"", 6, &err), 0);
    for (int i = 6; i < MAX_PART; i++)
        ck_assert_int_eq(json_splitter_feed(splitter, "x", 1, &err), 0);
    ck_assert_int_eq(json_splitter_feed(splitter, "x", 1, &err), -ERROR_TOO_LARGE);
    json_splitter_destroy(splitter);
}
