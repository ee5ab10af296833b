/* Names of objects as users write them. */
#include "plugin/cli/objects.h"

#include "common/api/kinds.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/suite.h"

static struct session session;
static struct error err;

static void set_up(void)
{
    arena_set_up();
    session = (struct session){ .arena = arena, .ns = "lab" };
}

TEST_GROUP("objects", set_up, arena_tear_down);

static const struct {
    unsigned takes;
    const char *text;
    const struct kube_kind *kind;
    const char *shown;
} NAMES[] = {
    { TAKES_ALL, "task/add", &KIND_TASK, "task/add" },
    { TAKES_ALL, "Tasks/add", &KIND_TASK, "task/add" },
    { TAKES_ALL, "ptask/add", &KIND_TASK, "task/add" },
    { TAKES_ALL, "pl/device-1", &KIND_PROPLET, "proplet/device-1" },
    { TAKES_ALL, "fljob/mnist", &KIND_FEDERATEDJOB, "federatedjob/mnist" },
    { TAKES_ALL, "round/mnist-1", &KIND_TRAININGROUND, "traininground/mnist-1" },
    { TAKES_PROPLET, "device-1", &KIND_PROPLET, "proplet/device-1" },
    { TAKES_JOB, "a.b", &KIND_PROPELLERJOB, "propellerjob/a.b" },
};

TEST_EACH(kinds_are_singular_plural_or_short, NAMES)
{
    struct object_ref ref;

    ck_assert_msg(object_ref_parse(&session, NAMES[_i].takes, NAMES[_i].text, &ref, &err) == 0,
                  "%s", err.message);
    ck_assert_ptr_eq(ref.kind, NAMES[_i].kind);
    ck_assert_str_eq(ref.name.ns, "lab");
    ck_assert_str_eq(object_ref_text(arena, &ref), NAMES[_i].shown);
}

static const struct {
    unsigned takes;
    const char *text, *message;
} REFUSED[] = {
    { TAKES_TASK | TAKES_JOB, "add", "'add' is not KIND/NAME (kinds: task, propellerjob)" },
    { TAKES_TASK | TAKES_JOB, "proplet/a",
      "'proplet/a': the kind must be one of task, propellerjob" },
    { TAKES_PROPLET, "pod/a", "'pod/a': the kind must be one of proplet" },
    { TAKES_TASK, "task/", "'task/': the name is not one of an object" },
    { TAKES_TASK, "../x", "'../x': the kind must be one of task" },
    { TAKES_TASK, "task/a/b", "'task/a/b': the name is not one of an object" },
};

TEST_EACH(what_is_no_name_is_refused_with_what_is_allowed, REFUSED)
{
    struct object_ref ref;

    ck_assert_int_eq(object_ref_parse(&session, REFUSED[_i].takes, REFUSED[_i].text, &ref, &err),
                     -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
}
