/* OpenSSL's objects bound to scopes, and PEM texts as such: for make.c and inspect.c. */
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/compiler.h"
#include "common/base/error.h"

DEFINE_CLEANUP(X509 *, X509_free)
DEFINE_CLEANUP(X509_EXTENSION *, X509_EXTENSION_free)
DEFINE_CLEANUP(X509_STORE *, X509_STORE_free)
DEFINE_CLEANUP(X509_STORE_CTX *, X509_STORE_CTX_free)
DEFINE_CLEANUP(GENERAL_NAMES *, GENERAL_NAMES_free)
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free)
DEFINE_CLEANUP(ASN1_TIME *, ASN1_TIME_free)
DEFINE_CLEANUP(ASN1_INTEGER *, ASN1_INTEGER_free)
DEFINE_CLEANUP(BIGNUM *, BN_free)
DEFINE_CLEANUP(BIO *, BIO_free_all)

/* NULL: none could be read. The caller frees them. */
X509 *cert_read_certificate(const char *pem); /* the first of the text */
EVP_PKEY *cert_read_key(const char *pem);     /* one with a password cannot be read */
/* The text that was written to bio, in the arena; NULL if there is none. */
const char *cert_bio_text(struct arena *arena, BIO *bio);

bool cert_is_address(const char *name); /* an IP address, as in a certificate */
