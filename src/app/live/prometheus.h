// SPDX-License-Identifier: Apache-2.0
// Runs as Prometheus asks for them (text format 0.0.4).
#ifndef YK_PROMETHEUS_H
#define YK_PROMETHEUS_H

#include <stdio.h>

#include "runs/read.h"

// What a run does not say has no sample.
void yk_prometheus(FILE *, int n, struct yk_view *const *);

#endif
