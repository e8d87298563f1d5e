// SPDX-License-Identifier: Apache-2.0
// A shared library that is not a plugin.
__attribute__((visibility("default"))) int yoke_plugin_initialise(void);
int yoke_plugin_initialise(void)
{
	return 0;
}
