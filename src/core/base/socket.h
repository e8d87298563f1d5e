// SPDX-License-Identifier: Apache-2.0
// <sys/socket.h> with MSG_NOSIGNAL of POSIX.1-2008.  Where the flag is missing, the functions of
// base/system.h that open sockets set SO_NOSIGPIPE.
#ifndef YK_SOCKET_H
#define YK_SOCKET_H

#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

#endif
