#include "common/tests/certs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tests/process.h"

void certs_make_ca(const char *dir, const char *name)
{
    char key[128];
    char crt[128];
    char subject[128];

    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(crt, sizeof(crt), "%s.crt", name);
    (void)snprintf(subject, sizeof(subject), "/CN=%s", name);

    const char *const argv[] = {
        "openssl", "req",     "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes",  "-keyout", key,     "-out",    crt,  "-subj",    subject,
        "-days",   "2",       NULL
    };

    process_run(dir, argv);
}

void certs_make(const char *dir, const char *ca, const char *name, const char *names)
{
    char key[128];
    char crt[128];
    char ca_crt[128];
    char ca_key[128];
    char subject[128];
    char config[512];

    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(crt, sizeof(crt), "%s.crt", name);
    (void)snprintf(ca_crt, sizeof(ca_crt), "%s.crt", ca);
    (void)snprintf(ca_key, sizeof(ca_key), "%s.key", ca);
    (void)snprintf(subject, sizeof(subject), "/CN=%s", name);
    (void)snprintf(config, sizeof(config),
                   "[req]\ndistinguished_name = name\nx509_extensions = extensions\n[name]\n"
                   "[extensions]\nsubjectAltName = %s\n",
                   names);

    const char *const argv[] = { "openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:prime256v1",
                                 "-nodes",
                                 "-keyout",
                                 key,
                                 "-out",
                                 crt,
                                 "-subj",
                                 subject,
                                 "-days",
                                 "2",
                                 "-CA",
                                 ca_crt,
                                 "-CAkey",
                                 ca_key,
                                 "-config",
                                 "names",
                                 NULL };

    free(temp_file_write(dir, "names", config));
    process_run(dir, argv);
}
