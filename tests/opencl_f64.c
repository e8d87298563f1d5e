// SPDX-License-Identifier: Apache-2.0
// Tests that a device that offers f64 but computes incorrectly is detected and used without it.
#include "config.h"

#include "opencl_host.h"

// Simulates a device without f64: computes in f32.
static const char *spoilt_text(const char *name)
{
	if (strcmp(name, "f64.cl"))
		return yk_kernel_text(name);
	return "#include \"prologue.h\"\n"
	       "KERNEL void f64_results(GLOBAL double *x)\n"
	       "{\n"
	       "	float a = (float)x[0], b = (float)x[1];\n"
	       "	for (int i = 4; i < 14; i++)\n"
	       "		x[i] = a + b;\n"
	       "}\n";
}

static uint64_t can(int code, int dtype)
{
	static struct yoke_map map = { .size = sizeof map, .ninsn = 2, .nin = 1, .nout = 1,
				       .out = { 1 } };
	const int64_t dims[1] = { 100 };
	struct yoke_view x = dense_view(NULL, 0, dtype, 1, dims), y = x;
	struct yoke_op op = { .size = sizeof op, .code = (uint16_t)code, .nattr = 3, .rank = 1,
			      .nout = 1, .nin = 1, .dims = { 100 }, .out = &y, .in = &x };

	map.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = (uint8_t)dtype };
	map.insn[1] = (struct yoke_insn){ .op = YOKE_MAP_NEG, .dtype = (uint8_t)dtype };
	op.map = code == YOKE_OP_MAP ? &map : NULL;
	op.attr[1].i = YOKE_REDUCE_SUM; // of a scan, along axis 0
	return cl->can(device, &op);
}

int main(void)
{
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n = 0;
	const char *why = test_load(getenv("YOKE_TEST_OPENCL"), &n);

	if (why)
		return skip_all(why);
	must(cl->device_info(device, &info), "device_info");
	if (!(info.flags & YOKE_DEVICE_F64))
		return skip_all("the device offers no f64");
	kernel_text = spoilt_text;
	ok(!can(YOKE_OP_MAP, yoke_f64), "maps of f64 are refused");
	ok(!can(YOKE_OP_SCAN, yoke_f64), "cumulative sums of f64 are refused");
	ok(!can(YOKE_OP_MAP, yoke_f64), "also at a second query");
	ok(can(YOKE_OP_MAP, yoke_f32), "maps of f32 work");
	ok(can(YOKE_OP_SCAN, yoke_f32), "cumulative sums of f32 work");
	ok(can(YOKE_OP_MOVE, yoke_f64), "copies of f64, which compute nothing, work");
	return done();
}
