// SPDX-License-Identifier: Apache-2.0
// Metrics of a split: accumulators for its batches, and the resulting values.
#ifndef YK_FIT_METRICS_H
#define YK_FIT_METRICS_H

#include "fit/node.h"
#include "fit/scores.h"

struct yk_meter {
	yoke_pipeline *p;
	struct yk_scores scores[YK_NODES];
	bool scored[YK_NODES];                 // whether this node's scores are kept
	double count[YK_METRICS][2][2];        // weight of pixels by label and by thresholded score
	yoke_statistic *in[YK_METRICS], *out[YK_METRICS]; // for explained_variance
};

enum { YK_METER_VALUES = YK_METRICS * YK_QUANTILES };
struct yk_meter_values {
	int n;
	char name[YK_METER_VALUES][100];
	double value[YK_METER_VALUES]; // NaN: not defined for this split
};

// EINVAL: the pipeline's shape, or a data set without labels, does not permit a metric.
int yk_metrics_check(const yoke_pipeline *, bool labels, const char *set);
int yk_meter_init(struct yk_meter *, yoke_pipeline *);
void yk_meter_fini(struct yk_meter *);
// Adds a batch: its values, labels u8 (NULL: none) and weights f32 or YOKE_NONE, with one entry per
// pixel.
int yk_meter_add(struct yk_meter *, struct yk_values *, yoke_tensor *label, yoke_tensor *weight);
int yk_meter_read(struct yk_meter *, struct yk_meter_values *);

#endif
