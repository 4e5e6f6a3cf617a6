/* SPDX-License-Identifier: Apache-2.0 */
/* Parca's services but for its profiles, which server/ingest takes. */
#pragma once

#include "server/handler/handler.h"

server_handler parca_debuginfo;        /* parca.debuginfo.v1alpha1.DebuginfoService */
server_handler parca_debuginfo_upload; /* its Upload, a stream of messages */
server_handler parca_unknown;          /* of the profile store, beside server/ingest's */
