/* propeller-certgen: the webhook's certificates, on machines without the controller */
#include <stdio.h>
#include <stdlib.h>

#include "certs/file_place.h"
#include "certs/file_set.h"
#include "certs/options.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/runtime/program.h"

#define PROGRAM "propeller-certgen"

struct settings {
    struct cert_settings certs;
    const char *cert_dir;
    const char *ca_dir;
    bool check;
};

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member), .fallback = (value)

static const struct option OPTIONS[] = {
    { OPTION("cert-dir", OPTION_STRING, cert_dir, NULL), .value_name = "DIR",
      .help = "where tls.crt and tls.key go, as propeller-webhook reads them" },
    { OPTION("ca-dir", OPTION_STRING, ca_dir, NULL), .value_name = "DIR",
      .help = "where ca.crt and ca.key go; the key is for nobody but this program" },
    { OPTION("check", OPTION_BOOL, check, "false"),
      .help = "change nothing; end with 1 and say why if something is to be done" },
    CERT_OPTIONS(struct settings, certs),
};

static int check_together(const struct settings *settings, struct error *err)
{
    if (str_is_empty(settings->cert_dir) || str_is_empty(settings->ca_dir))
        return error_set(err, ERROR_INVALID, "--cert-dir and --ca-dir: give both");
    if (str_equal(settings->cert_dir, settings->ca_dir))
        return error_set(err, ERROR_INVALID,
                         "--ca-dir: must not be --cert-dir, which others may read");
    return 0;
}

static void print_end(const char *what, int64_t end_us)
{
    char text[RFC3339_LEN];

    printf("%s valid until %s\n", what, rfc3339_format(end_us, text));
}

static void report(const struct cert_result *result)
{
    for (size_t i = 0; i < result->done_count; i++)
        printf("%s: %s\n", cert_step_name(result->done[i].step), result->done[i].why);
}

/* 0: nothing is to be done; 1: something is. */
static int check(struct arena *arena, const struct cert_place *place,
                 const struct cert_policy *policy, struct error *err)
{
    struct cert_plan plan;

    int r = cert_look(arena, place, policy, &CLOCK_SYSTEM, &plan, err);
    if (r < 0)
        return r;
    if (plan.step != CERT_IDLE) {
        printf("to be done: %s: %s\n", cert_step_name(plan.step), plan.why);
        return 1;
    }
    print_end("certificate", plan.leaf_end_us);
    return 0;
}

static int keep(struct arena *arena, const struct cert_place *place,
                const struct cert_policy *policy, struct error *err)
{
    struct cert_result result;

    int r = cert_keep(arena, place, policy, &CLOCK_SYSTEM, &result, err);
    report(&result);
    if (r < 0)
        return r;
    print_end("authority", result.plan.ca_end_us);
    print_end("certificate", result.plan.leaf_end_us);
    printf("next due at %s\n", rfc3339_format(result.plan.next_us, (char[RFC3339_LEN]){ 0 }));
    return 0;
}

static int run(struct arena *arena, const struct settings *settings,
               const struct cert_policy *policy, struct error *err)
{
    struct file_place files = { .cert_dir = settings->cert_dir, .ca_dir = settings->ca_dir };
    const struct cert_place place = { .self = &files,
                                      .load = file_place_load,
                                      .save_ca = file_place_save_ca,
                                      .save_leaf = file_place_save_leaf };
    int lock = -1;

    if (settings->check)
        return check(arena, &place, policy, err);
    int r = file_set_lock(settings->ca_dir, &lock, err);
    if (r < 0)
        return r;
    r = keep(arena, &place, policy, err);
    file_set_unlock(lock);
    return r;
}

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    struct settings settings = { .check = false };
    struct cert_policy policy;
    struct error err = { 0 };

    json_init();
    int r = options_parse(arena, PROGRAM, "Makes and renews the certificates of propeller-webhook.",
                          OPTIONS, ARRAY_LEN(OPTIONS), argc, argv, &settings, &err);
    if (r == 0)
        r = check_together(&settings, &err);
    if (r == 0)
        r = cert_policy_create(arena, &settings.certs, NULL, &policy, &err);
    if (r != 0)
        return program_end_of_options(PROGRAM, r, &err);

    r = run(arena, &settings, &policy, &err);
    if (r < 0)
        fprintf(stderr, PROGRAM ": %s\n", err.message);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
