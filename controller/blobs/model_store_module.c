/* The flags of the model store, from which each module makes a store with its own rights. */
#include "common/base/str.h"
#include "controller/blobs/model_store.h"
#include "controller/module/module.h"

extern const struct module MODEL_STORE_MODULE;

struct store_flags {
    const char *model_store; /* "configmap" or "s3" */
    const char *s3_endpoint, *s3_region, *s3_bucket, *s3_credentials_file;
};

static const char *const MODEL_STORES[] = { "configmap", "s3", NULL };

#define FLAG(flag, kind, member, value)                                                            \
    .name = (flag), .type = (kind), .offset = offsetof(struct store_flags, member),                \
    .fallback = (value)

static const struct option FLAG_TABLE[] = {
    { FLAG("model-store", OPTION_CHOICE, model_store, "configmap"), .choices = MODEL_STORES,
      .help = "store of models, large updates and checkpoints" },
    { FLAG("s3-endpoint", OPTION_STRING, s3_endpoint, NULL), .value_name = "URL",
      .help = "URL of the S3 service, such as https://s3.example.com; for --model-store s3" },
    { FLAG("s3-region", OPTION_STRING, s3_region, "us-east-1"), .value_name = "NAME",
      .help = "region in the signature of S3 requests" },
    { FLAG("s3-bucket", OPTION_STRING, s3_bucket, NULL), .value_name = "NAME",
      .help = "name of an existing bucket" },
    { FLAG("s3-credentials-file", OPTION_STRING, s3_credentials_file, NULL), .value_name = "FILE",
      .help = "file with access key and secret key, in the format of the AWS tools" },
};

static int check(const struct controller_settings *settings UNUSED, const void *own,
                 struct error *err)
{
    const struct store_flags *flags = own;

    if (str_equal(flags->model_store, "s3") &&
        (str_is_empty(flags->s3_endpoint) || str_is_empty(flags->s3_bucket) ||
         str_is_empty(flags->s3_credentials_file)))
        return error_set(err, ERROR_INVALID,
                         "--model-store: s3 needs --s3-endpoint, --s3-bucket and "
                         "--s3-credentials-file");
    return 0;
}

static const struct module_flags FLAGS = { FLAG_TABLE, ARRAY_LEN(FLAG_TABLE),
                                           sizeof(struct store_flags), check };

static int make_s3(struct module_host *host, const struct store_flags *flags,
                   struct model_store **ret, struct error *err)
{
    struct model_s3_options options = { .endpoint = flags->s3_endpoint,
                                        .region = flags->s3_region,
                                        .bucket = flags->s3_bucket,
                                        .credentials_file = flags->s3_credentials_file,
                                        .may_write = module_host_leads,
                                        .ctx = host };
    CLEANUP(arena_destroyp) struct arena *arena = arena_create();
    int r = model_s3_credentials_read(arena, flags->s3_credentials_file, &options, err);
    if (r < 0)
        return error_wrap(err, "--s3-credentials-file");

    r = model_store_s3_create(&options, ret, err);
    return r < 0 ? error_wrap(err, "--model-store") : 0;
}

int model_store_make(struct module_host *host, const struct module *user, struct model_store **ret,
                     struct error *err)
{
    const struct store_flags *flags = module_host_flags(host, &MODEL_STORE_MODULE);

    if (str_equal(flags->model_store, "s3"))
        return make_s3(host, flags, ret, err);
    *ret = model_store_configmap_create(module_host_client(host, user));
    return 0;
}

const struct module MODEL_STORE_MODULE = { .flags = &FLAGS };
