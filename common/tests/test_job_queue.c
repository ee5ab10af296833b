/* A PropellerJob that names a queue: the fields that Kueue counts by, and when they may change. */
#include "common/api/names.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/validate_fixture.h"

#define LABELS(list) "\"metadata\":{\"labels\":{" list "}}"
#define QUEUED LABELS("\"" LABEL_QUEUE "\":\"fleet\"")
#define SPEC(list, more) "\"spec\":{\"tasks\":[" list "]" more "}"
#define TASKS(list) SPEC(list, "")
#define ONE TASKS(TASK("a", ""))
#define TASK(name, more) "{\"name\":\"" name "\",\"imageUrl\":\"registry/a\"" more "}"
#define CPU(name, amount) TASK(name, ",\"resourceRequirements\":{\"cpu\":\"" amount "\"}")
#define EIGHT                                                                                      \
    CPU("a", "1")                                                                                  \
    "," CPU("b", "2") "," CPU("c", "3") "," CPU("d", "4") "," CPU("e", "5") "," CPU(               \
        "f", "6") "," CPU("g", "7") "," CPU("h", "8")
#define SUSPEND_FIRST(field) field ": Forbidden: suspend the job first"
#define RESERVED                                                                                   \
    ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"QuotaReserved\",\"status\":"   \
    "\"True\"}]}"
#define RUNNING ",\"status\":{\"phase\":\"Running\"}"

TEST_GROUP("job_queue", arena_set_up, arena_tear_down);

static const struct {
    const char *patch, *errors;
} JOBS[] = {
    { QUEUED "," ONE, "" },
    { QUEUED "," TASKS(EIGHT), "" },
    { QUEUED "," TASKS(EIGHT "," TASK("i", "")),
      "spec.tasks: Invalid value: 9: a queue takes at most 8 combinations of resourceRequirements "
      "and matchLabels" },
    { TASKS(EIGHT "," TASK("i", "")), "" }, /* without a queue */
    { QUEUED,                               /* with taskRefs */
      "metadata.labels[" LABEL_QUEUE
      "]: Invalid value: \"fleet\": a job of taskRefs alone has nothing to count" },
    { QUEUED "," TASKS(TASK("a", ",\"schedule\":\"0 * * * *\",\"isRecurring\":true")),
      "spec.tasks[0].isRecurring: Forbidden: goes on after the job has given its quota back" },
    { QUEUED "," TASKS(TASK("a", ",\"resourceRequirements\":{\"custom\":{\"pods\":\"1\"}}")),
      "spec.tasks[0].resourceRequirements.custom[pods]: Invalid value: \"1\": reserved by Kueue" },
    { LABELS("\"" LABEL_QUEUE "\":\"No_Name\"") "," ONE,
      "metadata.labels[" LABEL_QUEUE
      "]: Invalid value: \"No_Name\": must be a DNS-1123 subdomain" },
    { LABELS("\"" LABEL_QUEUE "\":\"q\",\"" LABEL_PRIORITY_CLASS "\":\"No_Name\"") "," ONE,
      "metadata.labels[" LABEL_PRIORITY_CLASS
      "]: Invalid value: \"No_Name\": must be a DNS-1123 subdomain" },
    { LABELS("\"" LABEL_QUEUE "\":\"q\",\"" LABEL_MAX_EXEC_TIME "\":\"0\"") "," ONE,
      "metadata.labels[" LABEL_MAX_EXEC_TIME
      "]: Invalid value: \"0\": must be an integer from 1 to 2147483647" },
    { LABELS("\"" LABEL_QUEUE "\":\"q\",\"" LABEL_MAX_EXEC_TIME "\":\"60\"") "," ONE, "" },
};

TEST_EACH(job_with_a_queue_can_be_counted, JOBS)
{
    const char *patch = arena_printf(arena, "{%s}", JOBS[_i].patch);

    ck_assert_str_eq(
        errors_of(arena, "propellerjob", object_with(arena, "propellerjob", patch), NULL),
        JOBS[_i].errors);
}

TEST(broadcast_counts_as_one_task_and_the_user_hears_it)
{
    const cJSON *job = object_with(arena, "propellerjob",
                                   "{" QUEUED "," TASKS(TASK("a", ",\"broadcast\":true")) "}");

    ck_assert_str_eq(warnings_of(arena, "propellerjob", job, NULL),
                     "spec.tasks[0].broadcast: counts as one Task for the queue");
}

/* old and new are merge patches. */
static const struct {
    const char *old, *new, *errors;
} CHANGES[] = {
    { QUEUED RESERVED "," ONE, ONE RESERVED, SUSPEND_FIRST("metadata.labels[" LABEL_QUEUE "]") },
    { QUEUED RESERVED "," ONE, LABELS("\"" LABEL_QUEUE "\":\"other\"") RESERVED "," ONE,
      SUSPEND_FIRST("metadata.labels[" LABEL_QUEUE "]") },
    { ONE RUNNING, QUEUED RUNNING "," ONE, SUSPEND_FIRST("metadata.labels[" LABEL_QUEUE "]") },
    { SPEC(TASK("a", ""), ",\"suspend\":true") RUNNING, QUEUED RUNNING "," ONE, "" },
    { ONE, QUEUED "," ONE, "" }, /* nothing runs yet */
    { QUEUED RUNNING "," ONE, ONE RUNNING, "" },
    { QUEUED RESERVED "," ONE, QUEUED RESERVED "," SPEC(TASK("a", ""), ",\"parallelism\":3"),
      SUSPEND_FIRST("spec.parallelism") },
    { QUEUED RESERVED "," ONE,
      QUEUED RESERVED "," SPEC(TASK("a", ""), ",\"executionMode\":\"parallel\""),
      SUSPEND_FIRST("spec.executionMode") },
    { QUEUED RESERVED "," ONE, QUEUED RESERVED "," TASKS(TASK("other", "")),
      SUSPEND_FIRST("spec.tasks") },
    { QUEUED RESERVED "," ONE, QUEUED RESERVED "," SPEC(TASK("a", ""), ",\"suspend\":true"), "" },
    { QUEUED RUNNING "," ONE, QUEUED RUNNING "," SPEC(TASK("a", ""), ",\"parallelism\":3"), "" },
    { QUEUED RUNNING, QUEUED RUNNING, "" }, /* refused at its creation, and left alone since */
};

TEST_EACH(counted_fields_change_only_without_quota, CHANGES)
{
    const cJSON *old =
        object_with(arena, "propellerjob", arena_printf(arena, "{%s}", CHANGES[_i].old));
    const cJSON *new =
        object_with(arena, "propellerjob", arena_printf(arena, "{%s}", CHANGES[_i].new));

    ck_assert_str_eq(errors_of(arena, "propellerjob", new, old), CHANGES[_i].errors);
}
