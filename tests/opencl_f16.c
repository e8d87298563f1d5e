// SPDX-License-Identifier: Apache-2.0
// Tests that a device's built-in f16 conversions are used only if they have the bits of
// cl/half.cl: with them, with a check that they fail, and with a text that does not compile, a
// cast has the same results, which equal a table.
#include "config.h"

#include "base/num.h"
#include "opencl_host.h"

enum { HALVES = 1 << 16 };

static const char *way; // result of the f16 check
static unsigned tests;  // number of requests: its length, then its text

static const char *watched_text(const char *name)
{
	if (strcmp(name, "f16.cl"))
		return yk_kernel_text(name);
	tests++;
	if (!strcmp(way, "wrong"))
		return "#include \"prologue.h\"\n"
		       "KERNEL void f16_same(GLOBAL uchar *same)\n"
		       "{\n"
		       "	same[GLOBAL_ID(0)] = GLOBAL_ID(0) != 0x3c01;\n"
		       "}\n";
	return !strcmp(way, "broken") ? "this is no kernel\n" : yk_kernel_text(name);
}

static float value_of(unsigned h)
{
	return (float)yk_num_load(&h, yoke_f16).f;
}

// Every f16 converted up, the results down again, and the midpoints to the next lower f16.
static unsigned wrong(void)
{
	enum { N = 2 * HALVES };
	static float x[N], up[HALVES];
	static uint16_t all[HALVES], down[N], want[N];
	struct yoke_map map = { .size = sizeof map, .ninsn = 2, .nin = 1, .nout = 1, .out = { 1 } };
	const int64_t dims[2] = { N, HALVES };
	void *queue, *from, *to, *e;
	unsigned bad = 0;

	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof x, &from), "segment_new");
	must(cl->segment_new(device, YOKE_SEGMENT_DEVICE, sizeof x, &to), "segment_new");
	for (unsigned h = 0; h < HALVES; h++) {
		// the next one is not a number
		const bool odd = h & 1, last = (h & 0x7fff) >= 0x7bff;
		all[h] = want[h] = (uint16_t)h;
		x[h] = value_of(h);
		x[HALVES + h] = last ? x[h] : (float)(((double)x[h] + (double)value_of(h + 1)) / 2);
		want[HALVES + h] = (uint16_t)(last ? h : h + odd); // ties to even
	}
	for (int narrow = 0; narrow < 2; narrow++) {
		const int out_type = narrow ? yoke_f16 : yoke_f32,
			  in_type = narrow ? yoke_f32 : yoke_f16;
		const int64_t *n = &dims[!narrow];
		struct yoke_view out = dense_view(to, 0, out_type, 1, n),
				 in = dense_view(from, 0, in_type, 1, n);
		struct yoke_op op = { .size = sizeof op,
				      .code = YOKE_OP_MAP,
				      .rank = 1,
				      .nout = 1,
				      .nin = 1,
				      .dims = { *n },
				      .out = &out,
				      .in = &in,
				      .map = &map };
		map.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = (uint8_t)in_type };
		map.insn[1] = (struct yoke_insn){ .op = YOKE_MAP_CAST, .dtype = (uint8_t)out_type };
		must(cl->put(queue, from, 0, narrow ? (void *)x : (void *)all,
			     narrow ? sizeof x : sizeof all), "put");
		must(run_op(queue, &op, 0), "run");
		must(cl->get(queue, to, 0, narrow ? (void *)down : (void *)up,
			     narrow ? sizeof down : sizeof up), "get");
		must(cl->event_mark(queue, &e), "event_mark");
		must(cl->event_wait(e), "event_wait");
		cl->event_free(e);
	}
	for (unsigned h = 0; h < HALVES; h++)
		bad += memcmp(&up[h], &x[h], sizeof *up) && !(isnan(x[h]) && isnan(up[h]));
	for (unsigned i = 0; i < N; i++)
		bad += isnan(x[i]) ? (down[i] & 0x7fff) <= 0x7c00 : down[i] != want[i];
	cl->segment_free(device, from);
	cl->segment_free(device, to);
	cl->queue_free(queue);
	return bad;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = { "right", "wrong", "broken" };
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n = 0;
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why)
		return skip_all(why);
	if (argc < 2) { // a device is checked once per process
		char command[4096];
		int failed = 0;
		for (int i = 0; i < 3 && !failed; i++) {
			snprintf(command, sizeof command, "YOKE_TEST_PRESET=gpu '%s' %s", argv[0],
				 ways[i]);
			failed = ok(!system(command), "%s", ways[i]) ? 0 : 1;
		}
		return done();
	}
	way = argv[1];
	kernel_text = watched_text;
	must(cl->device_info(device, &info), "device_info");
	unsigned bad = wrong();
	bool offered = info.flags & YOKE_DEVICE_F16;
	diag("%s: f16 %soffered, %u tests, %u results wrong", way, offered ? "" : "not ", tests,
	     bad);
	return bad || tests != 2u * offered;
}
