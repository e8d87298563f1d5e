// SPDX-License-Identifier: Apache-2.0
// Output of yoke-probe for `yoke doctor`: lines of tab-separated fields, beginning with a type:
//   loader PATH NAME | platform NAME VERSION DEVICES REMARK | error REASON
#ifndef YK_TOOL_PROBE_H
#define YK_TOOL_PROBE_H

#include <stdio.h>

void yk_probe_loader(FILE *);
void yk_probe_icd(FILE *, const char *library);

#endif
