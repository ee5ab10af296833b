#include "common/tests/certs.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/tests/process.h"

static void make_key(const char *dir, const char *key)
{
    const char *const argv[] = { "openssl", "ecparam", "-name", "prime256v1", "-genkey",
                                 "-noout",  "-out",    key,     NULL };

    process_run(dir, argv);
}

void certs_make_ca(const char *dir, const char *name)
{
    char key[128];
    char crt[128];
    char subject[128];

    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(crt, sizeof(crt), "%s.crt", name);
    (void)snprintf(subject, sizeof(subject), "/CN=%s", name);

    const char *const argv[] = { "openssl", "req",   "-x509", "-new",  "-key", key, "-out",
                                 crt,       "-subj", subject, "-days", "2",    NULL };

    make_key(dir, key);
    process_run(dir, argv);
}

void certs_make(const char *dir, const char *ca, const char *name, const char *names)
{
    char key[128];
    char csr[128];
    char crt[128];
    char ca_crt[128];
    char ca_key[128];
    char subject[128];
    char extension[256];

    (void)snprintf(key, sizeof(key), "%s.key", name);
    (void)snprintf(csr, sizeof(csr), "%s.csr", name);
    (void)snprintf(crt, sizeof(crt), "%s.crt", name);
    (void)snprintf(ca_crt, sizeof(ca_crt), "%s.crt", ca);
    (void)snprintf(ca_key, sizeof(ca_key), "%s.key", ca);
    (void)snprintf(subject, sizeof(subject), "/CN=%s", name);
    (void)snprintf(extension, sizeof(extension), "subjectAltName=%s\n", names);

    const char *const request[] = { "openssl", "req", "-new",  "-key",  key,
                                    "-out",    csr,   "-subj", subject, NULL };
    const char *const sign[] = { "openssl", "x509", "-req",     "-in",   csr,
                                 "-CA",     ca_crt, "-CAkey",   ca_key,  "-CAcreateserial",
                                 "-days",   "2",    "-extfile", "names", "-out",
                                 crt,       NULL };

    make_key(dir, key);
    process_run(dir, request);
    free(temp_file_write(dir, "names", extension));
    process_run(dir, sign);
}
