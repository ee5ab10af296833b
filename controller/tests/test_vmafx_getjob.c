/* GetJob: what is asked, and which answers can be used. */
#include "controller/vmafx/vmafx_getjob.h"

#include <signal.h>
#include <string.h>

#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"
#include "controller/tests/vmafx_peer.h"

#define A_MINUTE_S 60

static struct vmafx_peer peer;

static void set_up(void)
{
    arena_set_up();
    (void)signal(SIGPIPE, SIG_IGN);
    peer = (struct vmafx_peer){ .manner = H2_ANSWER };
    vmafx_peer_start(&peer);
}

static void tear_down(void)
{
    vmafx_peer_stop(&peer);
    arena_tear_down();
}

TEST_GROUP("get job", set_up, tear_down);

static struct vmafx_answer ask(void)
{
    const struct grpc_target target = {
        .url = arena_printf(arena, "http://127.0.0.1:%d", h2_server_port(peer.server)),
        .timeout_s = A_MINUTE_S,
    };

    return vmafx_get_job(arena, &target, "job-7");
}

static const struct {
    int status;
    enum vmafx_seen seen;
} STATUSES[] = { { 0, VMAFX_SEEN_PENDING },      { 1, VMAFX_SEEN_RUNNING },
                 { 2, VMAFX_SEEN_COMPLETED },    { 3, VMAFX_SEEN_FAILED },
                 { 4, VMAFX_SEEN_CANCELLED },    { 5, VMAFX_SEEN_UNAVAILABLE },
                 { -1, VMAFX_SEEN_UNAVAILABLE }, { 99, VMAFX_SEEN_UNAVAILABLE } };

TEST_EACH(answer_has_the_status_and_the_fields_of_the_job, STATUSES)
{
    peer.job = (struct vmafx_peer_job){ .status = STATUSES[_i].status,
                                        .node = "gpu-1",
                                        .error = "out of\nmemory",
                                        .updated_at_s = 1700000000,
                                        .score = -0.5 };
    const struct vmafx_answer answer = ask();

    ck_assert_str_eq(peer.asked, "job-7");
    ck_assert_int_eq(answer.seen, STATUSES[_i].seen);
    if (answer.seen == VMAFX_SEEN_UNAVAILABLE) {
        ck_assert_str_ne(answer.problem, "");
        return;
    }
    ck_assert_str_eq(answer.node, "gpu-1");
    ck_assert_str_eq(answer.error, "out of memory");
    ck_assert_int_eq(answer.updated_at_s, 1700000000);
    ck_assert_double_eq(answer.score, -0.5);
}

TEST(fields_that_are_not_sent_are_empty)
{
    const struct grpc_reply reply = { .status = GRPC_OK };
    const struct vmafx_answer answer = vmafx_answer_read(arena, &reply);

    ck_assert_int_eq(answer.seen, VMAFX_SEEN_PENDING);
    ck_assert_str_eq(answer.node, "");
    ck_assert_str_eq(answer.error, "");
    ck_assert_double_eq(answer.score, 0);
}

TEST(other_statuses_than_not_found_are_no_answer)
{
    for (peer.grpc_status = 1; peer.grpc_status <= 16; peer.grpc_status++)
        ck_assert_int_eq(ask().seen, peer.grpc_status == GRPC_NOT_FOUND ? VMAFX_SEEN_NOT_FOUND
                                                                        : VMAFX_SEEN_UNAVAILABLE);
    ck_assert_uint_eq(h2_server_connections(peer.server), 1);
}

TEST(peer_that_closes_is_no_answer)
{
    peer.manner = H2_CLOSE;
    ck_assert_int_eq(ask().seen, VMAFX_SEEN_UNAVAILABLE);
}

TEST(malformed_message_is_no_answer)
{
    static const char *const MESSAGES[] = { "\x12\x7f", "\x0a\xff\xff\xff\xff\x0f", "\x07",
                                            "\x4d" };

    for (size_t i = 0; i < ARRAY_LEN(MESSAGES); i++) {
        const struct grpc_reply reply = { .status = GRPC_OK,
                                          .message = { MESSAGES[i], strlen(MESSAGES[i]) } };

        ck_assert_int_eq(vmafx_answer_read(arena, &reply).seen, VMAFX_SEEN_UNAVAILABLE);
    }
}

TEST(text_is_cut_at_a_character_and_dropped_if_it_is_none)
{
    ck_assert_str_eq(vmafx_text(arena, "a\xc3\xa4", 2), "a");
    ck_assert_str_eq(vmafx_text(arena, "a\xc3", 9), "");
    ck_assert_str_eq(vmafx_text(arena, "a\x7f\tb", 9), "a  b");
}
