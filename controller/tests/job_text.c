#include "controller/tests/job_text.h"

#include <stdbool.h>
#include <string.h>

static const char *one_task(struct arena *arena, const char *text, size_t len)
{
    size_t name = strcspn(text, "<! ");
    const char *needs = "";
    size_t at = name + 1;

    while (at < len) {
        size_t need = strcspn(text + at, ", ");
        needs = arena_printf(arena, "%s%s\"%.*s\"", needs, *needs ? "," : "", (int)need, text + at);
        at += need + 1;
    }
    return arena_printf(arena, "{\"name\":\"%.*s\",\"dependsOn\":[%s],\"runIf\":\"%s\"}", (int)name,
                        text, needs, name < len && text[name] == '!' ? "failure" : "success");
}

const char *job_text_tasks(struct arena *arena, const char *text)
{
    const char *tasks = "";

    for (size_t len; *text; text += len + (text[len] == ' ')) {
        len = strcspn(text, " ");
        tasks = arena_printf(arena, "%s%s%s", tasks, *tasks ? "," : "", one_task(arena, text, len));
    }
    return arena_printf(arena, "\"tasks\":[%s]", tasks);
}
