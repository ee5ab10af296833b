/* Requests to an API of the same process, in the form in which those to a server are made. */
#pragma once

#include "common/kube/transport.h"
#include "standalone/api/api.h"

/* As an administrator, no watches; never fails. ctx: the struct api. */
http_roundtrip_fn api_roundtrip;
