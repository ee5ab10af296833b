/* The Task that `run` creates. */
#include "plugin/commands/run_manifest.h"

#include <unistd.h>

#include "common/base/str.h"
#include "common/tests/arena_fixture.h"
#include "common/tests/parsed.h"
#include "common/tests/suite.h"
#include "common/tests/temp_dir.h"

static struct run_flags flags;
static struct error err;

static void set_up(void)
{
    arena_set_up();
    flags = (struct run_flags){ .image = "http://files.example/report.wasm",
                                .retries = RUN_NO_RETRIES,
                                .priority = RUN_NO_PRIORITY };
}

TEST_GROUP("run", set_up, arena_tear_down);

static struct str_list strings(const char *first, const char *second)
{
    struct str_list ret = { .items = arena_array(arena, const char *, 2) };

    ret.items[0] = first;
    ret.items[1] = second;
    ret.len = second ? 2 : 1;
    return ret;
}

static const char *made(void)
{
    cJSON *task = NULL;

    ck_assert_msg(run_manifest(arena, &flags, "lab", &task, &err) == 0, "%s", err.message);
    return json_text(arena, task, NULL);
}

#define HEAD                                                                                       \
    "{\"apiVersion\":\"propeller.propeller.abstractmachines.fr/v1\",\"kind\":\"Task\","            \
    "\"metadata\":{\"name\":\"one\",\"namespace\":\"lab\"},\"spec\":{\"name\":\"one\","

TEST(few_flags_make_a_small_task)
{
    flags.names = strings("one", NULL);
    ck_assert_str_eq(made(), HEAD "\"imageUrl\":\"http://files.example/report.wasm\"}}");
}

TEST(every_flag_has_its_field)
{
    flags.names = strings("one", NULL);
    flags.function = "f";
    flags.inputs = strings("9007199254740993", "text,1");
    flags.on = "p";
    flags.labels = strings("site=lab", NULL);
    flags.capabilities = strings("gpu", NULL);
    flags.type = "external";
    flags.env = strings("A=b=c", "EMPTY=");
    flags.retries = 0;
    flags.deadline_ms = 1500;
    flags.broadcast = true;
    flags.schedule = "@daily";
    flags.timezone = "Europe/Paris";
    flags.priority = 7;
    ck_assert_str_eq(
        made(),
        HEAD "\"functionName\":\"f\",\"imageUrl\":\"http://files.example/report.wasm\","
             "\"inputs\":[9007199254740993,\"text,1\"],\"preferredPropletType\":\"external\","
             "\"backoffLimit\":0,\"activeDeadlineSeconds\":2,\"broadcast\":true,"
             "\"schedule\":\"@daily\",\"isRecurring\":true,\"timezone\":\"Europe/Paris\","
             "\"priority\":7,\"propletSelector\":{\"propletId\":\"p\","
             "\"matchCapabilities\":[\"gpu\"],\"matchLabels\":{\"site\":\"lab\"}},"
             "\"env\":{\"A\":\"b=c\",\"EMPTY\":\"\"}}}");
}

TEST(a_module_is_sent_with_the_task_and_names_it)
{
    const char *dir = temp_dir(arena);
    cJSON *task = NULL;

    flags.image = NULL;
    flags.wasm = temp_file(arena, dir, "My_Add.wasm", "no module");
    ck_assert_int_eq(run_manifest(arena, &flags, "lab", &task, &err), -ERROR_INVALID);
    ck_assert(str_has_suffix(err.message, "is not a WebAssembly module"));

    FILE *file = fopen(flags.wasm, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite("\0asm\1\0\0\0", 1, 8, file), 8);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(run_manifest(arena, &flags, "lab", &task, &err), 0);
    ck_assert_str_eq(json_string(json_path(task, "spec", "file", NULL), ""), "AGFzbQEAAAA=");
    ck_assert_str_eq(json_string(json_path(task, "spec", "functionName", NULL), ""), "My_Add");
    const char *name = json_string(json_path(task, "metadata", "name", NULL), "");
    ck_assert_msg(str_has_prefix(name, "my-add-") && str_is_dns_subdomain(name), "%s", name);
}

TEST(a_module_above_the_limit_is_refused_with_the_way_out)
{
    const char *path = temp_file(arena, temp_dir(arena), "large.wasm", "");
    FILE *file = fopen(path, "w");
    cJSON *task = NULL;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), RUN_MAX_MODULE + 1), 0);
    ck_assert_int_eq(fclose(file), 0);
    flags.image = NULL;
    flags.wasm = path;
    ck_assert_int_eq(run_manifest(arena, &flags, "lab", &task, &err), -ERROR_INVALID);
    ck_assert_str_eq(
        err.message,
        arena_printf(arena,
                     "--wasm: file '%s' is larger than 537600 bytes, which is the limit "
                     "of spec.file: put it on a server and use --image",
                     path));
}

static void no_image(void)
{
    flags.image = NULL;
}
static void both(void)
{
    flags.wasm = "x";
}
static void no_pair(void)
{
    flags.env = strings("SECRET", NULL);
}
static void empty_key(void)
{
    flags.labels = strings("=x", NULL);
}
static void two_names(void)
{
    flags.names = strings("a", "b");
}
static void bad_name(void)
{
    flags.names = strings("A_b", NULL);
}
static void only_zone(void)
{
    flags.timezone = "UTC";
}

static const struct {
    void (*change)(void);
    const char *message;
} REFUSED[] = {
    { no_image, "exactly one of --wasm and --image must be given" },
    { both, "exactly one of --wasm and --image must be given" },
    { no_pair, "--env: a value is not KEY=VALUE" },
    { empty_key, "--selector: a value is not KEY=VALUE" },
    { two_names, "a Task has one name" },
    { bad_name, "'A_b' is not a name of an object" },
    { only_zone, "--timezone: only with --schedule" },
};

TEST_EACH(flags_that_make_no_task_are_refused_by_name, REFUSED)
{
    cJSON *task = NULL;

    REFUSED[_i].change();
    ck_assert_int_eq(run_manifest(arena, &flags, "lab", &task, &err), -ERROR_INVALID);
    ck_assert_str_eq(err.message, REFUSED[_i].message);
}
