#include "controller/vmafx/vmafx_getjob.h"

#include <ctype.h>
#include <string.h>
#include <vmafx.pb-c.h>

#include "common/base/str.h"

#define METHOD "/vmafx.controller.v1.VmafxController/GetJob"

static const enum vmafx_seen SEEN_OF[] = {
    [VMAFX__CONTROLLER__V1__JOB_STATUS__PENDING] = VMAFX_SEEN_PENDING,
    [VMAFX__CONTROLLER__V1__JOB_STATUS__RUNNING] = VMAFX_SEEN_RUNNING,
    [VMAFX__CONTROLLER__V1__JOB_STATUS__COMPLETED] = VMAFX_SEEN_COMPLETED,
    [VMAFX__CONTROLLER__V1__JOB_STATUS__FAILED] = VMAFX_SEEN_FAILED,
    [VMAFX__CONTROLLER__V1__JOB_STATUS__CANCELLED] = VMAFX_SEEN_CANCELLED,
};

static void *take_memory(void *arena, size_t size)
{
    return arena_alloc(arena, size, 1);
}

static void leave_memory(void *arena UNUSED, void *memory UNUSED)
{
}

const char *vmafx_text(struct arena *arena, const char *text, size_t max)
{
    char *copy = arena_strndup(arena, text, str_utf8_cut(text, strlen(text), max));

    if (!str_is_utf8(copy, strlen(copy)))
        return "";
    for (char *c = copy; *c; c++)
        *c = iscntrl((unsigned char)*c) ? ' ' : *c;
    return copy;
}

static struct vmafx_answer no_answer(enum vmafx_seen seen, const char *problem)
{
    return (struct vmafx_answer){ .seen = seen, .node = "", .error = "", .problem = problem };
}

struct vmafx_answer vmafx_answer_read(struct arena *arena, const struct grpc_reply *reply)
{
    ProtobufCAllocator memory = { take_memory, leave_memory, arena };

    if (reply->status == GRPC_NOT_FOUND)
        return no_answer(VMAFX_SEEN_NOT_FOUND, "");
    if (reply->status != GRPC_OK)
        return no_answer(VMAFX_SEEN_UNAVAILABLE,
                         arena_printf(arena, "status %d: %s", (int)reply->status, reply->text));

    const Vmafx__Controller__V1__Job *job =
        vmafx__controller__v1__job__unpack(&memory, reply->message.len, reply->message.bytes);

    if (!job)
        return no_answer(VMAFX_SEEN_UNAVAILABLE, "the answer is not a job");
    if ((size_t)job->status >= ARRAY_LEN(SEEN_OF))
        return no_answer(VMAFX_SEEN_UNAVAILABLE, "the job has a status that is not known");
    return (struct vmafx_answer){ .seen = SEEN_OF[job->status],
                                  .node = vmafx_text(arena, job->assigned_node, VMAFX_MAX_NODE),
                                  .error = vmafx_text(arena, job->error, VMAFX_MAX_ERROR),
                                  .updated_at_s = job->updated_at,
                                  .score = job->final_score,
                                  .problem = "" };
}

struct vmafx_answer vmafx_get_job(struct arena *arena, const struct grpc_target *target,
                                  const char *id)
{
    Vmafx__Controller__V1__GetJobRequest request = VMAFX__CONTROLLER__V1__GET_JOB_REQUEST__INIT;
    struct grpc_target limited = *target;
    struct grpc_reply reply;
    struct error err = { 0 };

    limited.max_message = VMAFX_MAX_JOB;
    request.job_id = arena_strdup(arena, id);

    size_t len = vmafx__controller__v1__get_job_request__get_packed_size(&request);
    uint8_t *bytes = arena_alloc(arena, len, 1);
    const struct grpc_message message = { bytes, len };

    (void)vmafx__controller__v1__get_job_request__pack(&request, bytes);
    if (grpc_call(arena, &limited, METHOD, &message, &reply, &err) < 0)
        return no_answer(VMAFX_SEEN_UNAVAILABLE, arena_strdup(arena, err.message));
    return vmafx_answer_read(arena, &reply);
}
