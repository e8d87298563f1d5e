// SPDX-License-Identifier: Apache-2.0
// A plugin whose constructor ends the process while the library is loaded.
#include <stdlib.h>

#define NAME "constructor"
#include "bad.h"

__attribute__((constructor)) static void leave(void)
{
	_Exit(3);
}
