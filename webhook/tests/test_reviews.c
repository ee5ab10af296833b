/* Every review in webhook/tests/reviews/ is answered as it says. */
#include "common/tests/suite.h"
#include "webhook/handler.h"
#include "webhook/tests/review_files.h"

/* Fewer means that the folder was not found whole. */
#define LEAST_FILES 300

static size_t count;

static size_t find_reviews(void)
{
    json_init();
    return count = review_files_find();
}

TEST_TIMES(a_review_is_answered_as_expected, find_reviews())
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct review_file file = review_file_read(arena, (size_t)_i);
    struct admission_settings settings = { .clock = &CLOCK_SYSTEM, .has_vmafx = true };
    const struct http_server_request request = { .method = "POST",
                                                 .path = file.hook->path,
                                                 .query = "timeout=5s",
                                                 .content_type = "application/json",
                                                 .body = file.body,
                                                 .body_len = file.body_len };
    struct http_server_reply reply = { .status = 0 };

    admission_handle(&settings, arena, &request, &reply);
    review_check(arena, &file, reply.status, reply.content_type, reply.body, reply.body_len);
}

TEST(every_hook_has_reviews)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    size_t found[16] = { 0 };

    ck_assert_uint_ge(count, LEAST_FILES);
    for (size_t i = 0; i < count; i++)
        found[review_file_read(arena, i).hook - admission_hooks()]++;
    for (size_t i = 0; admission_hooks()[i].path; i++)
        ck_assert_msg(found[i] >= 4, "%s: %zu", admission_hooks()[i].path, found[i]);
}
