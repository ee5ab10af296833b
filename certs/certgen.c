/* propeller-certgen: the webhook's certificates, on machines without the controller */
#include <stdio.h>
#include <stdlib.h>

#include "certs/cluster_place.h"
#include "certs/file_place.h"
#include "certs/file_set.h"
#include "certs/options.h"
#include "common/base/str.h"
#include "common/json/json.h"
#include "common/runtime/program.h"

#define PROGRAM "propeller-certgen"

#define API_TIMEOUT_MS 10000

struct settings {
    struct cert_settings certs;
    const char *cert_dir;
    const char *ca_dir;
    bool secrets;
    bool configurations;
    const char *kubeconfig;
    bool check;
};

/* Where the pairs are, and the bundles; self of a struct cert_place. */
struct place {
    struct kube_config *config; /* NULL, like client: no cluster is asked */
    struct kube_client *client;
    struct cluster_place cluster;
    struct file_place files;
};

#define OPTION(flag, kind, member, value)                                                          \
    .name = (flag), .type = (kind), .offset = offsetof(struct settings, member), .fallback = (value)

static const struct option OPTIONS[] = {
    { OPTION("cert-dir", OPTION_STRING, cert_dir, NULL), .value_name = "DIR",
      .help = "directory of tls.crt and tls.key, which propeller-webhook reads" },
    { OPTION("ca-dir", OPTION_STRING, ca_dir, NULL), .value_name = "DIR",
      .help = "directory of ca.crt and ca.key; only this program may read the key" },
    { OPTION("secrets", OPTION_BOOL, secrets, "false"),
      .help = "keep the key pairs in the Secrets " CERT_SECRET_CA " and " CERT_SECRET_LEAF
              " instead, and set the caBundle of the configurations" },
    { OPTION("configurations", OPTION_BOOL, configurations, "false"),
      .help = "with --cert-dir, also set the caBundle of the webhook configurations" },
    { OPTION("kubeconfig", OPTION_STRING, kubeconfig, NULL), .value_name = "FILE",
      .help = "kubeconfig for --secrets and --configurations; default is $KUBECONFIG, then the "
              "pod's service account, then ~/.kube/config" },
    { OPTION("check", OPTION_BOOL, check, "false"),
      .help = "change nothing; exit with 1 and print the reason if a step is due" },
    CERT_OPTIONS(struct settings, certs),
};

static int check_apart(const struct settings *settings, struct error *err)
{
    if (file_set_is_same(settings->cert_dir, settings->ca_dir))
        return error_set(err, ERROR_INVALID,
                         "--ca-dir: must not be --cert-dir, which others may read");
    return 0;
}

static int check_together(const struct settings *settings, struct error *err)
{
    bool has_dirs = !str_is_empty(settings->cert_dir) && !str_is_empty(settings->ca_dir);
    bool has_dir = !str_is_empty(settings->cert_dir) || !str_is_empty(settings->ca_dir);

    if (settings->secrets && (has_dir || settings->configurations))
        return error_set(err, ERROR_INVALID,
                         "--secrets: not together with --cert-dir, --ca-dir or --configurations");
    if (!settings->secrets && !has_dirs)
        return error_set(err, ERROR_INVALID,
                         "--cert-dir and --ca-dir, or --secrets: say where the pairs are");
    return settings->secrets ? 0 : check_apart(settings, err);
}

/* --- files, and the configurations beside them ------------------------------------------------ */

static int load(void *self, struct arena *arena, struct cert_observed *ret, struct error *err)
{
    struct place *place = self;

    int r = file_place_load(&place->files, arena, ret, err);
    if (r < 0 || !place->client)
        return r;
    return configurations_load(&place->cluster.configurations, arena, ret, err);
}

static int save_ca(void *self, struct arena *arena, const struct cert_pair *ca, const char *trust,
                   struct error *err)
{
    return file_place_save_ca(&((struct place *)self)->files, arena, ca, trust, err);
}

static int save_leaf(void *self, struct arena *arena, const struct cert_pair *leaf,
                     struct error *err)
{
    return file_place_save_leaf(&((struct place *)self)->files, arena, leaf, err);
}

static int save_bundles(void *self, struct arena *arena, const char *trust, struct error *err)
{
    return configurations_save(&((struct place *)self)->cluster.configurations, arena, trust, err);
}

/* --- what is done ----------------------------------------------------------------------------- */

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
    if (plan.why) {
        printf("nothing to do: %s\n", plan.why);
        return 0;
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
    if (result.plan.why) {
        printf("nothing to do: %s\n", result.plan.why);
        return 0;
    }
    print_end("authority", result.plan.ca_end_us);
    print_end("certificate", result.plan.leaf_end_us);
    printf("next due at %s\n", rfc3339_format(result.plan.next_us, (char[RFC3339_LEN]){ 0 }));
    return 0;
}

/* One process at a time; in a cluster versions see to that. */
static int keep_files(struct arena *arena, const struct settings *settings,
                      const struct cert_place *place, const struct cert_policy *policy,
                      struct error *err)
{
    int lock = -1;
    int r = file_set_lock(settings->ca_dir, &lock, err);

    if (r < 0)
        return r;
    r = check_apart(settings, err); /* the directory may have been made just now */
    if (r == 0)
        r = keep(arena, place, policy, err);
    file_set_unlock(lock);
    return r;
}

/* Not between two files of somebody who renews them. */
static int check_files(struct arena *arena, const struct settings *settings,
                       const struct cert_place *place, const struct cert_policy *policy,
                       struct error *err)
{
    int lock;
    int r = file_set_lock_shared(settings->ca_dir, &lock, err);

    if (r < 0)
        return r;
    r = check(arena, place, policy, err);
    file_set_unlock(lock);
    return r;
}

static int run(struct arena *arena, const struct settings *settings, struct place *self,
               const struct cert_policy *policy, struct error *err)
{
    const struct cert_place files = { .self = self,
                                      .load = load,
                                      .save_ca = save_ca,
                                      .save_leaf = save_leaf,
                                      .save_bundles = save_bundles };
    const struct cert_place place = settings->secrets ? cluster_place(&self->cluster) : files;

    if (settings->check)
        return settings->secrets ? check(arena, &place, policy, err)
                                 : check_files(arena, settings, &place, policy, err);
    return settings->secrets ? keep(arena, &place, policy, err)
                             : keep_files(arena, settings, &place, policy, err);
}

static int place_create(const struct settings *settings, struct place *ret, struct error *err)
{
    ret->files = (struct file_place){ .cert_dir = settings->cert_dir, .ca_dir = settings->ca_dir };
    if (!settings->secrets && !settings->configurations)
        return 0;

    int r = kube_config_load(settings->kubeconfig, &ret->config, err);
    if (r < 0)
        return r;
    ret->client = kube_client_create(ret->config, API_TIMEOUT_MS);
    ret->cluster = (struct cluster_place){
        .configurations = { .client = ret->client,
                            .name = settings->certs.configuration,
                            .service = settings->certs.service,
                            .ns = str_is_empty(settings->certs.ns)
                                      ? kube_config_namespace(ret->config)
                                      : settings->certs.ns,
                            .optional = true },
    };
    return 0;
}

static void place_release(struct place *place)
{
    kube_client_destroy(place->client);
    kube_config_destroy(place->config);
}
DEFINE_CLEANUP_OF(struct place, place_release)

static const struct option_program ABOUT = {
    .name = PROGRAM,
    .about = "Makes and renews the certificates of propeller-webhook.",
    .examples = { "propeller-certgen --ca-dir ca --cert-dir certs --webhook-namespace "
                  "propeller-system",
                  "propeller-certgen --secrets --webhook-namespace propeller-system --check" },
    .manual = "propeller-certgen(8)",
};

int main(int argc, char **argv)
{
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    CLEANUP(place_releasep) struct place place = { .client = NULL };
    struct settings settings = { .check = false };
    struct cert_policy policy;
    struct error err = { 0 };

    json_init();
    int r = options_parse(arena, &ABOUT, OPTIONS, ARRAY_LEN(OPTIONS), argc, argv, &settings, &err);
    if (r == 0)
        r = check_together(&settings, &err);
    if (r == 0)
        r = place_create(&settings, &place, &err);
    if (r == 0)
        r = cert_policy_create(arena, &settings.certs, place.cluster.configurations.ns, &policy,
                               &err);
    if (r != 0)
        return program_end_of_options(PROGRAM, r, &err);

    r = run(arena, &settings, &place, &policy, &err);
    if (r < 0)
        fprintf(stderr, PROGRAM ": %s\n", err.message);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
