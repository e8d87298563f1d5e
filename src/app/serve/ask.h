// SPDX-License-Identifier: Apache-2.0
// Checks a request for completions.
#ifndef YK_SERVE_ASK_H
#define YK_SERVE_ASK_H

#include "serve/fields.h"

// Parses the body of a request for completions (chat: of messages).  false: the reply is an error.
bool yk_ask_read(struct yk_serve *, struct yk_exchange *, bool chat, struct yk_ask *);
void yk_ask_fini(struct yk_ask *);

#endif
