// SPDX-License-Identifier: Apache-2.0
// Metrics of runs in the text format 0.0.4 of Prometheus.
#ifndef YK_PROMETHEUS_H
#define YK_PROMETHEUS_H

#include <stdio.h>

#include "runs/read.h"

// A value that a run does not record gets no sample.
void yk_prometheus(FILE *, int n, struct yk_view *const *);

#endif
