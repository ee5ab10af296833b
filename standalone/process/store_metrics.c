#include "standalone/process/store_metrics.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/runtime/metrics.h"

static struct metric BYTES = {
    .type = METRIC_GAUGE,
    .name = "propeller_store_bytes",
    .help = "Size of the files of the store: database and log.",
    .labels = { "file" },
};
static struct metric FREE = {
    .type = METRIC_GAUGE,
    .name = "propeller_store_free_bytes",
    .help = "Free bytes of the file system that has the store.",
};
static struct metric OBJECTS = {
    .type = METRIC_GAUGE,
    .name = "propeller_store_objects",
    .help = "Number of stored objects of each resource.",
    .labels = { "resource" },
};
static struct metric READABLE = {
    .type = METRIC_GAUGE,
    .name = "propeller_store_readable",
    .help = "1, or 0 while a part of the store cannot be read.",
};

static void report_file(const char *label, const char *path)
{
    struct stat file = { 0 };

    if (stat(path, &file) == 0)
        metric_set(&BYTES, (double)file.st_size, label, NULL);
}

/* A resource that cannot be counted keeps its last number. */
static void report_objects(struct arena *arena, const struct store_metrics *self)
{
    for (size_t i = 0; i < resources_len(self->resources); i++) {
        const struct resource *resource = resources_at(self->resources, i);
        const struct kv_range range = {
            .prefix = arena_printf(arena, "/registry/%s/", resource->storage),
            .limit = 1,
        };
        struct kv_page page;
        struct error err;

        if (!resource->absent && kv_list(self->kv, arena, &range, &page, &err) == 0)
            metric_set(&OBJECTS, (double)(page.len + page.remaining), resource->storage, NULL);
    }
}

void store_metrics_report(void *self)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    const struct store_metrics *metrics = self;
    struct statvfs disk;
    struct error err;

    report_file("database", metrics->path);
    report_file("log", arena_printf(arena, "%s-wal", metrics->path));
    if (statvfs(metrics->path, &disk) == 0)
        metric_set(&FREE, (double)disk.f_bavail * (double)disk.f_frsize, NULL);
    metric_set(&READABLE, kv_health(metrics->kv, &err) == 0, NULL);
    report_objects(arena, metrics);
}
