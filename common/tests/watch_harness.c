#include "common/tests/watch_harness.h"

const struct kube_kind KIND_GADGET = { .group = "example.org",
                                       .version = "v1",
                                       .kind = "Gadget",
                                       .plural = "gadgets",
                                       .namespaced = true };
struct watch_machine *machine;
int64_t now_ms;
char *last_text;

static struct buf told = BUF_INIT(1 << 20);

static void sink(void *ctx, enum watch_event_type type, struct kube_object *object,
                 const char *version)
{
    static const char *const NAMES[] = { "init",  "item",   "keep",     "done",
                                         "apply", "delete", "bookmark", "refused" };

    ck_assert_ptr_eq(ctx, &told);
    ck_assert(buf_printf(&told, "%s", NAMES[type]));
    if (object)
        ck_assert(buf_printf(&told, " %s/%s", object->ns, object->name));
    if (version)
        ck_assert(buf_printf(&told, " @%s", version));
    ck_assert(buf_append(&told, "\n", 1));
    if (object) {
        free(last_text);
        CLEANUP(arena_destroyp) struct arena *arena = arena_create();
        last_text = xstrdup(kube_object_text(arena, object, NULL));
    }
}

void watch_set_up_with(const struct watch_options *options)
{
    watch_machine_destroy(machine);
    now_ms = 1000000;
    machine = watch_machine_create(options, sink, &told);
}

void watch_set_up(void)
{
    struct watch_options options = { .kind = &KIND_GADGET };

    json_init();
    log_configure(LOG_ERROR, LOG_TEXT); /* warnings are wanted here, and many */
    watch_set_up_with(&options);
}

void watch_tear_down(void)
{
    watch_machine_destroy(machine);
    machine = NULL;
    buf_release(&told);
    free(last_text);
    last_text = NULL;
}

const char *told_so_far(void)
{
    return buf_string(&told);
}

void expect_told(const char *text)
{
    ck_assert_str_eq(buf_string(&told), text);
    forget_told();
}

void forget_told(void)
{
    buf_clear(&told);
}

int64_t request(const char *path)
{
    struct watch_request next;

    watch_machine_next(machine, now_ms, &next);
    ck_assert_str_eq(next.path, path);
    int64_t wait_ms = next.not_before_ms > now_ms ? next.not_before_ms - now_ms : 0;
    now_ms += wait_ms;
    return wait_ms;
}

void check_wait(int64_t wait_ms, int64_t whole_ms)
{
    ck_assert_int_ge(wait_ms, whole_ms / 2);
    ck_assert_int_le(wait_ms, whole_ms);
}

/* Each chunk has memory of its own, so that the sanitizer sees a read beyond it. */
int feed(const char *bytes, size_t len, size_t chunk)
{
    struct error err = { 0 };
    int r = watch_machine_feed(machine, "", 0, &err);

    for (size_t i = 0; r == 0 && i < len; i += chunk) {
        size_t part = len - i < chunk ? len - i : chunk;
        char *copy = xmalloc(part);
        memcpy(copy, bytes + i, part);
        r = watch_machine_feed(machine, copy, part, &err);
        free(copy);
        if (part < chunk)
            break;
    }
    ck_assert_int_eq(r, -(int)err.code);
    return r;
}

void reply(const char *body, int64_t lasted_ms)
{
    ck_assert_int_eq(feed(body, strlen(body), SIZE_MAX), 0);
    now_ms += lasted_ms;
    watch_machine_finish(machine, 200, NULL, now_ms);
}

void refuse(int status, const char *body)
{
    watch_machine_finish(machine, status, body, now_ms);
}

void get_to_watch(void)
{
    request(LIST_CACHED);
    reply(LIST("", "10"), 5);
    expect_told("init\ndone @10\n");
}

static void gone_as_status(void)
{
    refuse(410, STATUS(410, "Expired", "too old resource version"));
}

static void gone_as_event(void)
{
    static const char event[] = ERROR_EVENT(410, "Expired", "too old resource version: 10 (90)");

    ck_assert_int_eq(feed(event, strlen(event), SIZE_MAX), -ERROR_GONE);
    watch_machine_finish(machine, 200, NULL, now_ms);
}

static void gone_as_event_without_code(void)
{
    static const char event[] = "{\"type\":\"ERROR\",\"object\":{\"reason\":\"Gone\"}}";

    ck_assert_int_eq(feed(event, strlen(event), SIZE_MAX), -ERROR_GONE);
    watch_machine_finish(machine, 0, "aborted", now_ms);
}

void (*const GONE[])(void) = { gone_as_status, gone_as_event, gone_as_event_without_code };
