// SPDX-License-Identifier: Apache-2.0
// Stubs for a backend's table: default results of missing entries, and results of all entries in a
// forked child.  A driver's threads and locks do not survive fork(2), so no call may reach a
// backend after it.
#include "config.h"

#include "device/plugin.h"

// X(result, function, parameters, result if missing, result in a child)
#define CALLS(X) \
	X(int, probe, (uint32_t *n), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, device_info, (uint32_t d, struct yoke_device_info *i), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, segment_new, (uint32_t d, int k, uint64_t n, void **s), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(void, segment_free, (uint32_t d, void *s), , ) \
	X(void *, segment_host, (void *s), NULL, NULL) \
	X(int, queue_new, (uint32_t d, int k, void **q), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(void, queue_free, (void *q), , ) \
	X(int, queue_flush, (void *q), 0, YOKE_EFORK) \
	X(int, put, (void *q, void *s, uint64_t o, const void *f, uint64_t n), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, get, (void *q, void *s, uint64_t o, void *t, uint64_t n), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, copy, (void *q, void *t, uint64_t to, void *f, uint64_t fo, uint64_t n), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, fill, (void *q, void *s, uint64_t o, uint64_t n, const void *p, uint32_t pn), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, event_mark, (void *q, void **e), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, event_after, (void *q, void *e), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, event_done, (void *e), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, event_wait, (void *e), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, event_elapsed, (void *f, void *t, uint64_t *ns), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(void, event_free, (void *e), , ) \
	X(uint64_t, can, (uint32_t d, const struct yoke_op *o), 0, 0) \
	X(int, prepare, (uint32_t d, const struct yoke_op *o, uint32_t i, uint64_t p, void **h, \
			 uint64_t *n), 0, YOKE_EFORK) \
	X(int, run, (void *q, void *h, const struct yoke_op *o), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(void, release, (void *h), , ) \
	X(const char *, impl_name, (uint32_t d, const struct yoke_op *o, uint32_t i), "", "") \
	X(const void *, ext, (const char *name), NULL, NULL) \
	X(int, segment_wrap, (uint32_t d, void *m, uint64_t n, void **s), \
	  YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, copy_between, \
	  (void *q, uint32_t td, void *t, uint64_t to, uint32_t fd, void *f, uint64_t fo, \
	   uint64_t n), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, graph_begin, (void *q), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, graph_end, (void *q, void **g), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(int, graph_run, (void *q, void *g), YOKE_EUNSUPPORTED, YOKE_EFORK) \
	X(void, graph_free, (void *g), , )

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(type, name, params, hole, child) \
	static type hole_##name params { return hole; } \
	static type child_##name params { return child; }
CALLS(X)
#undef X
#pragma GCC diagnostic pop

bool yk_stubs_fill(struct yoke_backend *t)
{
	if (!t->graph_end || !t->graph_run || !t->graph_free || !t->copy || !t->fill) // all or none
		t->graph_begin = NULL;
	bool graphs = t->graph_begin;
#define X(type, name, params, hole, child) \
	if (!t->name) \
		t->name = hole_##name;
	CALLS(X)
#undef X
	return graphs;
}

void yk_stubs_forked(struct yoke_backend *t)
{
#define X(type, name, params, hole, child) t->name = child_##name;
	CALLS(X)
#undef X
}
