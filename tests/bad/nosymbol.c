// SPDX-License-Identifier: Apache-2.0
// A library that is no plugin.
__attribute__((visibility("default"))) int yoke_plugin_initialise(void);
int yoke_plugin_initialise(void)
{
	return 0;
}
