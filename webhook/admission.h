/* Answers AdmissionReviews, from request bytes to response bytes. Has no I/O. */
#pragma once

#include "common/api/admission.h"
#include "common/base/clock.h"

/* Two objects of at most 3 MiB each (etcd's limit, doubled by JSON) and 1 MiB for the rest. */
#define ADMISSION_MAX_BODY (7u << 20)

/* The hook of an HTTP path. It either sets defaults or validates. */
struct admission_hook {
    const char *path;
    const struct admission *admission;
    const char *const *texts;    /* members of a review that no rule reads */
    const struct schema *schema; /* of the spec; NULL: the path defaults */
};

/* Those of all kinds of ADMISSION; ended by one without a path. Any thread. */
const struct admission_hook *admission_hooks(void);
const struct admission_hook *admission_hook_find(const char *path); /* NULL: there is none */

struct admission_settings {
    size_t max_inline_wasm;                /* 0: the schema's limit */
    const char *zoneinfo;                  /* NULL: the system's */
    const struct admission_policy *policy; /* NULL: allows everything */
    const struct clock *clock;             /* NULL: no warnings that depend on the time */
    bool has_vmafx;                        /* kinds of the extension "vmafx" are served, too */
};

struct admission_answer {
    const char *body; /* an AdmissionReview, in the arena */
    size_t body_len;
    bool allowed;
};

/*
 * Pure, but for the clock of the settings and the look into the database of time zones. ERROR_INVALID: the body is no
 * AdmissionReview of admission.k8s.io/v1 for this hook; ERROR_TOO_LARGE: it has too many values.
 * Neither repeats anything of the body.
 */
int admission_review(struct arena *arena, const struct admission_hook *hook,
                     const struct admission_settings *settings, const char *body, size_t len,
                     struct admission_answer *ret, struct error *err) MUST_CHECK;
