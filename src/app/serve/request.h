// SPDX-License-Identifier: Apache-2.0
// Checks a request for completions.
#ifndef YK_SERVE_REQUEST_H
#define YK_SERVE_REQUEST_H

#include "serve/fields.h"

// Parses the body of a request for completions (chat: of messages).  false: the reply is an error.
bool yk_completion_request_read(struct yk_serve *, struct yk_exchange *, bool chat,
				struct yk_completion_request *);
void yk_completion_request_fini(struct yk_completion_request *);

#endif
