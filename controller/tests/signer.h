/* Signatures as cosign makes them with a key pair, by the published formats. */
#pragma once

#include <stddef.h>

#include "common/base/arena.h"

struct signer;
/* A key pair of the curve; "P-256" is cosign's. NULL: RSA with 2048 bits. */
struct signer *signer_create(const char *curve);
void signer_destroy(struct signer *signer);
const char *signer_public_pem(struct signer *signer, struct arena *arena);
const char *signer_private_pem(struct signer *signer, struct arena *arena);
/* The signature of the text with SHA-256, in base64. */
const char *signer_sign(struct signer *signer, struct arena *arena, const char *text);

/* The text that cosign signs for a digest "sha256:<hex>". */
const char *simple_signing(struct arena *arena, const char *digest);
/* A Sigstore bundle with a DSSE envelope. predicate NULL: that of a signature. */
const char *signature_bundle(struct signer *signer, struct arena *arena, const char *digest,
                             const char *predicate);
