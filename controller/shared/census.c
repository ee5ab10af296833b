#include "controller/shared/census.h"

#include "common/base/str.h"
#include "common/runtime/metrics.h"

static struct metric JOBS = {
    .type = METRIC_GAUGE,
    .name = "propeller_jobs",
    .help = "Number of PropellerJobs, FederatedJobs and TrainingRounds in each phase.",
    .labels = { "kind", "phase" },
};

size_t census_phase(const cJSON *object, const char *const *names)
{
    const char *phase = json_string(json_path(object, "status", "phase", NULL), "");

    for (size_t i = 0; names[i]; i++) {
        if (str_equal(names[i], phase))
            return i;
    }
    return 0;
}

void census_report_jobs(const char *kind, const char *const *names, const size_t *counts)
{
    for (size_t i = 0; names[i]; i++)
        metric_set(&JOBS, (double)counts[i], kind, names[i], NULL);
}
