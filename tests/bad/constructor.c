// SPDX-License-Identifier: Apache-2.0
// A plugin that ends the process while it is loaded, before anything of it is called.
#include <stdlib.h>

#define NAME "constructor"
#include "bad.h"

__attribute__((constructor)) static void leave(void)
{
	_Exit(3);
}
