/* Certificates for tests, made with the openssl program. */
#pragma once

/* dir/<name>.crt and dir/<name>.key: a CA. */
void certs_make_ca(const char *dir, const char *name);
/* dir/<name>.crt and dir/<name>.key, signed by the CA of that name in dir. names: the subject
 * alternative names, "DNS:localhost,IP:127.0.0.1". */
void certs_make(const char *dir, const char *ca, const char *name, const char *names);
