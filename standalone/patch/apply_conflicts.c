#include "standalone/patch/apply_conflicts.h"

#include "common/base/buf.h"

/* All conflicts of one apply in words; those that do not fit are counted only. */
#define MAX_CONFLICTS_TEXT (64u << 10)

struct conflicts {
    struct arena *arena;
    const char *manager; /* in words, of those that are visited */
    cJSON *causes;
    struct buf lines;
    const char *only; /* the path, while there is one */
    bool cut;
};

static bool add_conflict(void *ctx, const struct field_path *path)
{
    struct conflicts *conflicts = ctx;
    const char *text = field_path_text(conflicts->arena, path);

    conflicts->only = text;
    conflicts->cut = conflicts->cut || !buf_printf(&conflicts->lines, "\n- %s", text);
    if (conflicts->cut)
        return false;

    cJSON *cause = json_add_object(conflicts->causes);

    json_set_string(cause, "reason", "FieldManagerConflict");
    json_set_string(cause, "message",
                    arena_printf(conflicts->arena, "conflict with %s", conflicts->manager));
    json_set_string(cause, "field", text);
    return true;
}

static int compare_managers(const void *a, const void *b)
{
    return manager_compare(a, b);
}

static const char *message_of(struct conflicts *conflicts, size_t count)
{
    if (count == 1)
        return arena_printf(conflicts->arena, "Apply failed with 1 conflict: conflict with %s: %s",
                            conflicts->manager, conflicts->only);
    return arena_printf(conflicts->arena, "Apply failed with %zu conflicts: %s%s", count,
                        buf_string(&conflicts->lines), conflicts->cut ? "\n- ..." : "");
}

const cJSON *apply_conflicts(struct arena *arena, struct managers *managers)
{
    struct conflicts conflicts = { .arena = arena,
                                   .causes = json_array(arena),
                                   .lines = BUF_INIT(MAX_CONFLICTS_TEXT) };
    cJSON *status = json_object(arena);
    size_t count = 0;

    qsort(managers->items, managers->len, sizeof(*managers->items), compare_managers);
    for (size_t i = 0; i < managers->len; i++) {
        conflicts.manager = manager_text(arena, &managers->items[i]);
        conflicts.cut =
            conflicts.cut ||
            !buf_printf(&conflicts.lines, "%sconflicts with %s:", i ? "\n" : "", conflicts.manager);
        field_set_each(managers->items[i].set, add_conflict, &conflicts);
        count += field_set_count(managers->items[i].set);
    }
    json_set_string(status, "kind", "Status");
    json_set_string(status, "apiVersion", "v1");
    json_set_object(status, "metadata");
    json_set_string(status, "status", "Failure");
    json_set_string(status, "message", message_of(&conflicts, count));
    json_set_string(status, "reason", "Conflict");
    json_set_copy(json_set_object(status, "details"), "causes", conflicts.causes);
    json_set_int(status, "code", 409);
    buf_release(&conflicts.lines);
    return status;
}
