/* vmafx_answer_read: whatever a peer sends as a job, its texts are short UTF-8 without control characters. */
#include <ctype.h>
#include <string.h>

#include "common/base/str.h"
#include "common/tests/fuzz/target.h"
#include "controller/vmafx/vmafx_getjob.h"

static void check_text(const char *text, size_t max)
{
    REQUIRE(text && strlen(text) <= max && str_is_utf8(text, strlen(text)));
    for (; *text; text++)
        REQUIRE(!iscntrl((unsigned char)*text));
}

void fuzz_input(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct grpc_reply reply = { .status = GRPC_OK, .text = "", .message = { bytes, len } };
    const struct vmafx_answer answer = vmafx_answer_read(arena, &reply);

    REQUIRE(answer.seen >= VMAFX_SEEN_UNAVAILABLE && answer.seen <= VMAFX_SEEN_CANCELLED);
    REQUIRE(answer.seen != VMAFX_SEEN_NOT_FOUND && answer.problem);
    check_text(answer.node, VMAFX_MAX_NODE);
    check_text(answer.error, VMAFX_MAX_ERROR);
}
