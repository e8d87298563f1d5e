// SPDX-License-Identifier: Apache-2.0
// Tests that products with quantized weights have the same bits with AMX, VNNI and the instruction
// sets of this processor as with the plain loops, with 16-bit and 8-bit activations. AMX tiles and
// VPDPBUSD are emulated in C here; where the processor has them, they run too.
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../backends/cpu/host/frame.h"
#include "../backends/cpu/quant/activations.h"
#include "../backends/cpu/vector/amx.h"
#include "device/device.h"
#include "tap.h"
#include "yoke-quant.h"

extern const struct yk_kernel yk_qlinear_base, yk_qlinear_amx_emulated;
#if defined __x86_64__ && !defined YK_NO_AVX2
extern const struct yk_kernel yk_qlinear_avx2, yk_qlinear_vnni_emulated;
#endif

enum { M_MAX = 300, N_MAX = 131, K_MAX = 1280 };

static const struct {
	int format, block, bytes;
	const char *name;
	int scales[2]; // offsets of f16 numbers in a block
} formats[] = {
	{ YOKE_QUANT_Q4_0, 32, 18, "Q4_0", { 0, 0 } },
	{ YOKE_QUANT_Q4_1, 32, 20, "Q4_1", { 0, 2 } },
	{ YOKE_QUANT_Q5_0, 32, 22, "Q5_0", { 0, 0 } },
	{ YOKE_QUANT_Q5_1, 32, 24, "Q5_1", { 0, 2 } },
	{ YOKE_QUANT_Q8_0, 32, 34, "Q8_0", { 0, 0 } },
	{ YOKE_QUANT_Q4_K, 256, 144, "Q4_K", { 0, 2 } },
	{ YOKE_QUANT_Q5_K, 256, 176, "Q5_K", { 0, 2 } },
	{ YOKE_QUANT_Q6_K, 256, 210, "Q6_K", { 208, 208 } },
	{ YOKE_QUANT_F16, 1, 2, "F16", { 0, 0 } },
};
enum { FORMATS = sizeof formats / sizeof *formats };

static uint8_t w[N_MAX * K_MAX * 2] __attribute__((aligned(64)));
static float x[M_MAX * K_MAX] __attribute__((aligned(64)));
static float plain[M_MAX * N_MAX] __attribute__((aligned(64)));
static float got[M_MAX * N_MAX + 1] __attribute__((aligned(64)));
static float number[N_MAX * K_MAX] __attribute__((aligned(64)));

static struct yoke_view view(struct yk_segment *s, void *memory, int dtype, int64_t rows,
			     int64_t cols)
{
	*s = (struct yk_segment){ memory, (uint64_t)(rows * cols) * yk_esize(dtype) };
	return (struct yoke_view){ .segment = s,
				   .dims = { rows, cols },
				   .strides = { cols, 1 },
				   .align = 64,
				   .dtype = (uint8_t)dtype,
				   .rank = 2,
				   .kind = YOKE_VIEW_BUFFER };
}

struct product {
	int f;
	int64_t m, n, k;
};

// y [m,n]; the workspace is followed by a guard.
static int compute(const struct yk_kernel *kernel, const struct product *p, float *y)
{
	struct yk_segment at[4];
	const struct yoke_view in[] = { view(&at[0], x, yoke_f32, p->m, p->k),
					view(&at[1], w, yoke_u8, p->n,
					     p->k / formats[p->f].block * formats[p->f].bytes) },
			       out = view(&at[2], y, yoke_f32, p->m, p->n);
	struct yoke_op op = { .size = sizeof op,
			      .code = YOKE_OP_QLINEAR,
			      .nattr = 2,
			      .nout = 1,
			      .nin = 2,
			      .out = &out,
			      .in = in };
	op.attr[0].i = formats[p->f].format;
	op.attr[1].i = p->k;
	const uint64_t mask = kernel->can(&op), bytes = kernel->workspace(&op, mask > 1);
	char *memory = aligned_alloc(64, bytes + 64);
	if (!mask || !memory)
		return -1;
	memset(memory, 0x7f, bytes + 64);
	op.workspace = view(&at[3], memory, yoke_u8, 1, (int64_t)bytes);
	int err = yk_kernel_once(kernel, &op, mask > 1);
	for (int i = 0; i < 64; i++)
		err = memory[bytes + (uint64_t)i] != 0x7f ? -1 : err;
	free(memory);
	return err;
}

static void draw(const struct product *p, bool odd)
{
	const int64_t blocks = p->n * p->k / formats[p->f].block;
	for (int64_t i = 0; i < blocks; i++) {
		uint8_t *b = w + i * formats[p->f].bytes;
		for (int j = 0; j < formats[p->f].bytes; j++)
			b[j] = (uint8_t)rnd();
		for (int j = 0; j < 2; j++) {
			const int h = (int)rnd_int(0x2000, 0x3c00) | (int)rnd_int(0, 1) << 15;
			b[formats[p->f].scales[j]] = (uint8_t)h;
			b[formats[p->f].scales[j] + 1] = (uint8_t)(h >> 8);
		}
	}
	// the largest moduli of integers too
	for (int64_t i = 0; i < p->m * p->k; i++)
		x[i] = (float)(rnd_int(0, 3) ? rnd_real(-1, 1) : (double)rnd_int(-1, 1)) *
		       (rnd_int(0, 40) ? 1 : 0x1p9f);
	for (int i = 0; odd && i < 8; i++)
		x[rnd_int(0, p->m * p->k - 1)] = i % 2 ? NAN : -INFINITY;
	for (int i = 0; odd && i < p->k; i++)
		x[i] = 0;
}

// Number of results whose bits differ; all NaNs are equal.
static int64_t differ(const float *a, const float *b, int64_t n)
{
	int64_t wrong = 0;
	for (int64_t i = 0; i < n; i++)
		wrong += memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i]));
	return wrong;
}

static void test_same(const char *name, const struct yk_kernel *kernel, const struct product *p)
{
	const int64_t n = p->m * p->n;
	memset(got, 0xff, sizeof got);
	const int err = compute(kernel, p, got);
	const int64_t wrong = differ(got, plain, n);
	ok(!err && !wrong && isnan(got[n]),
	   "%s, %s, %s, [%d,%d] by [%d]: %d of %d differ, error %d", name, formats[p->f].name,
	   yk_int8_activations ? "int8" : "int16", (int)p->m, (int)p->k, (int)p->n, (int)wrong,
	   (int)n, err);
}

// The plain product against float64; errors of x are at most half a step of its group.
static void test_reference(const struct product *p)
{
	const double step = yk_int8_activations ? 1 / 254. : 1 / 32766.;
	double worst = 0;
	yoke_tensor *of = yoke_dequant(
		yoke_from(yoke_u8, 2,
			  (int64_t[]){ p->n, p->k / formats[p->f].block * formats[p->f].bytes }, w),
		formats[p->f].format, p->k, yoke_f32);
	const int err = yoke_read(of, number, (uint64_t)(p->n * p->k) * sizeof *number);
	for (int64_t i = 0; i < p->m * p->n && !err; i++) {
		double sum = 0, bound = 0;
		for (int64_t j = 0; j < p->k; j++) {
			const float *row = x + i / p->n * p->k;
			const double of_w = (double)number[i % p->n * p->k + j];
			double largest = 0;
			for (int64_t l = j / 32 * 32; l < j / 32 * 32 + 32; l++)
				largest = fmax(largest, fabs((double)row[l]));
			sum += (double)row[j] * of_w;
			bound += fabs(of_w) * largest * (2 * step + 0x1p-16);
		}
		const double ratio = fabs((double)got[i] - sum) / bound;
		worst = isnan(ratio) ? INFINITY : fmax(worst, ratio);
	}
	ok(!err && worst <= 1, "%s, %s: largest error %.3f of the bound", formats[p->f].name,
	   yk_int8_activations ? "int8" : "int16", worst);
}

static void test_ways(int f, int64_t m, int64_t n, int64_t blocks, bool odd)
{
	const struct product p = { f, m, n, blocks * (formats[f].block > 32 ? 256 : 32) };
	draw(&p, odd);
	yk_arm_dot = yk_arm_i8mm = false;
	compute(&yk_qlinear_base, &p, plain);
	test_same("emulated AMX", &yk_qlinear_amx_emulated, &p);
#ifdef HAVE_ARM_DOT
	const struct yk_arm arm = yk_arm_features();
	yk_arm_dot = arm.dot;
	if (arm.dot)
		test_same("sdot", &yk_qlinear_base, &p);
	yk_arm_i8mm = arm.i8mm;
	if (arm.i8mm)
		test_same("usdot", &yk_qlinear_base, &p);
#endif
	if (!odd && formats[f].block > 1 && m < 40)
		test_reference(&p);
#if defined __x86_64__ && !defined YK_NO_AVX2
	// with FMA the order is the same, but each step rounds once
	const struct yk_isa *list[YK_ISA_LEVELS];
	const int count = yk_isa_levels(list);
	if (count < 2)
		return;
	const bool vnni = yk_vnni_256;
	yk_vnni_256 = false;
	compute(&yk_qlinear_avx2, &p, plain);
	yk_vnni_256 = true;
	test_same("emulated VNNI", &yk_qlinear_vnni_emulated, &p);
	yk_vnni_256 = vnni;
	for (int i = 1; i < count && formats[f].block > 1; i++)
		test_same(list[i]->name, list[i]->op[YOKE_OP_QLINEAR], &p);
#endif
}

// ---- the emulation ----

static void configure(const uint8_t *c)
{
	yk_tile_configure(c);
}

static void small(const uint8_t *c)
{
	static uint8_t memory[64 * 16];
	(void)c;
	yk_tiles_begin(16, 32);
	yk_tile_load(4, memory, 64);
	yk_tile_load(6, memory, 64);
	yk_tile_multiply_ss(4, 6, 0); // shapes that do not match
}

static void same(const uint8_t *c)
{
	(void)c;
	yk_tiles_begin(16, 64);
	yk_tile_multiply_uu(0, 0, 6);
}

static void unconfigured(const uint8_t *c)
{
	(void)c;
	yk_tiles_begin(16, 64);
	yk_tiles_end();
	yk_tile_zero(0);
}

static void test_fault(const char *what, void (*run)(const uint8_t *), const uint8_t *c,
		       bool faults)
{
	int status = 0;
	fflush(stdout);
	const pid_t pid = fork();
	if (pid == 0) {
		dup2(open("/dev/null", O_WRONLY), 2);
		run(c);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
	ok(pid > 0 && aborted == faults, "emulated tiles: %s: %s", what,
	   aborted ? "faults" : "runs");
}

static void test_faults(void)
{
	static const struct {
		const char *what;
		int at, value;
		bool faults;
	} bad[] = {
		{ "16 rows of 64 bytes", 48, 16, false },
		{ "17 rows", 48, 17, true },
		{ "65 bytes", 16, 65, true },
		{ "256 bytes more", 17, 1, true },
		{ "bytes without rows", 48, 0, true },
		{ "palette 2", 0, 2, true },
		{ "a reserved byte", 2, 1, true },
		{ "tile 8", 48 + 8, 1, true },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint8_t c[64] = { [0] = 1, [16] = 64, [48] = 16 };
		c[bad[i].at] = (uint8_t)bad[i].value;
		test_fault(bad[i].what, configure, c, bad[i].faults);
	}
	test_fault("a product of other shapes", small, NULL, true);
	test_fault("a product of a tile with itself", same, NULL, true);
	test_fault("a tile after release", unconfigured, NULL, true);
}

// A load leaves no old rows or bytes, and a store writes the tile's shape only.
static void test_zeroing(void)
{
	uint8_t ones[64 * 16], to[64 * 16];
	int wrong = 0;
	memset(ones, 1, sizeof ones);
	memset(to, 9, sizeof to);
	yk_tiles_begin(3, 8);
	yk_tile_load(4, ones, 64);
	yk_tile_store(4, to, 64);
	for (int i = 0; i < 64 * 16; i++)
		wrong += to[i] != (i / 64 < 3 && i % 64 < 8 ? 1 : 9);
	yk_tiles_begin(16, 64);
	yk_tile_store(4, to, 64);
	for (int i = 0; i < 64 * 16; i++)
		wrong += to[i] != 0;
	yk_tiles_end();
	ok(!wrong, "emulated tiles: %d bytes of a shape, and of tiles configured again, are wrong",
	   wrong);
}

int main(void)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		return skip_all(
			"tiles and products of bytes are those of x86, which is little-endian");
	tap_seed();
	yk_device_cpu();
	test_faults();
	test_zeroing();
	for (int mode = 0; mode < 2; mode++) {
		yk_int8_activations = mode;
		for (int f = 0; f < FORMATS; f++) {
			test_ways(f, 1, 17, 2, false);
			test_ways(f, 4, 33, 3, false);
			test_ways(f, 5, 15, 1, false);
			test_ways(f, 16, 64, formats[f].block > 32 ? 2 : 16, false);
			test_ways(f, 33, N_MAX, formats[f].block > 32 ? 3 : 19, false);
			test_ways(f, 259, 65, formats[f].block > 32 ? 1 : 17, false);
			test_ways(f, 37, 37, formats[f].block > 32 ? 3 : 17, true);
		}
	}
	return done();
}
