// SPDX-License-Identifier: Apache-2.0
// Measures f32 contractions of the OpenCL backend beside OpenBLAS, called directly, and CLBlast,
// called through the backend.
// For each shape, all implementations run in turn in every round, each repeated to fill an equal
// time; the results are medians of the times and of the per-round ratios. Skinny shapes are
// compared with as many matrix-vector products, and with padding to whole tiles (the packed
// variant). Flops: 2 M N K per matrix.
// Arguments: the module, then shapes MxNxK or MxNxKxBATCH followed by NT or TN; default: all.
#include "config.h"

#include <unistd.h>

#include "../tests/opencl_host.h"
#include "peers/peers.h"
#include "rounds.h"

enum { ROUNDS = 15, IMPLS = 9, LIMIT = IMPLS + 2, BLAS = IMPLS, VECTORS = IMPLS + 1 };
static const double SECONDS = 1; // approximate seconds per shape

static const struct {
	int m, n, k, batch;
} sizes[] = {
	{ 64, 64, 64, 1 },       { 128, 128, 128, 1 },    { 256, 256, 256, 1 },
	{ 512, 512, 512, 1 },    { 1024, 1024, 1024, 1 }, { 2048, 2048, 2048, 1 },
	{ 1024, 768, 768, 1 },   { 1024, 3072, 768, 1 },  { 512, 512, 128, 1 },
	{ 128, 128, 64, 48 },    { 1, 4096, 4096, 1 },    { 8, 4096, 4096, 1 },
	{ 16, 4096, 4096, 1 },
};

static void *queue;

struct problem {
	struct peer_shape s;
	float *host[3];
	void *segment[3], *work;
	// row: the first row of y and a, for matrix-vector products
	struct yoke_view view[3], row[3];
	struct yoke_op op, one;
	void *handle[IMPLS], *one_row;
	uint64_t impls;
};

// Implementations that may run op: those that the backend offers, and CLBlast as a peer wherever it
// can.
static uint64_t offered(const struct yoke_op *op)
{
	uint64_t impls;

	clblast = "1";
	impls = cl->can(device, op);
	clblast = "0";
	return impls | cl->can(device, op);
}

static void require_impl(const struct yoke_op *op, int impl)
{
	clblast = strcmp(cl->impl_name(device, op, (uint32_t)impl), "clblast") ? "0" : "1";
}

static int first_impl(uint64_t impls)
{
	return __builtin_ctzll(impls);
}

static struct yoke_op op_of(struct yoke_view *v)
{
	return (struct yoke_op){ .size = sizeof(struct yoke_op),
				 .code = YOKE_OP_CONTRACT,
				 .nout = 1,
				 .nin = 2,
				 .out = v,
				 .in = v + 1 };
}

static void give_work(struct problem *p)
{
	uint64_t max = 0, bytes = 0;

	for (int i = 0; i < IMPLS; i++)
		if (p->impls >> i & 1) {
			bytes = 0;
			require_impl(&p->op, i);
			must(cl->prepare(device, &p->op, (uint32_t)i, 0, &p->handle[i], &bytes),
			     "prepare");
			max = bytes > max ? bytes : max;
		}
	clblast = "0";
	bytes = 0;
	must(cl->prepare(device, &p->one, (uint32_t)first_impl(cl->can(device, &p->one)), 0,
			 &p->one_row, &bytes), "prepare");
	max = bytes > max ? bytes : max;
	if (!max)
		return;
	const int64_t dims[] = { (int64_t)max };
	must(cl->segment_new(device, 0, max, &p->work), "segment");
	p->op.workspace = p->one.workspace = dense_view(p->work, 0, yoke_u8, 1, dims);
}

// y, a, b: dense, the matrices of a batch one after another.
static void problem_init(struct problem *p, const struct peer_shape *s)
{
	const int64_t dims[3][3] = { { s->batch, s->m, s->n },
				     { s->batch, s->m, s->k },
				     { s->batch, s->k, s->n } };
	const bool t[3] = { false, s->ta, s->tb };

	memset(p, 0, sizeof *p);
	p->s = *s;
	for (int i = 0; i < 3; i++) {
		size_t n = (size_t)(dims[i][0] * dims[i][1] * dims[i][2]), bytes = n * 4;
		p->host[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
		for (size_t j = 0; j < n; j++)
			p->host[i][j] = (float)(j % 1021) / 1021 - 0.5f;
		must(cl->segment_new(device, 0, bytes, &p->segment[i]), "segment");
		must(cl->put(queue, p->segment[i], 0, p->host[i], bytes), "put");
		p->view[i] = dense_view(p->segment[i], 0, yoke_f32, 3, dims[i]);
		if (t[i]) {
			p->view[i].strides[1] = 1;
			p->view[i].strides[2] = dims[i][1];
		}
		p->row[i] = p->view[i];
		if (i < 2)
			p->row[i].dims[1] = 1;
	}
	p->op = op_of(p->view);
	p->one = op_of(p->row);
	p->impls = offered(&p->op);
	give_work(p);
}

static void problem_fini(struct problem *p)
{
	for (int i = 0; i < 3; i++) {
		cl->segment_free(device, p->segment[i]);
		free(p->host[i]);
	}
	for (int i = 0; i < IMPLS; i++)
		if (p->impls >> i & 1)
			cl->release(p->handle[i]);
	cl->release(p->one_row);
	if (p->work)
		cl->segment_free(device, p->work);
}

static void finish(void)
{
	void *e;
	must(cl->event_mark(queue, &e), "event_mark");
	must(cl->event_wait(e), "event_wait");
	cl->event_free(e);
}

// Seconds per run of one contender: an implementation, BLAS or VECTORS; the first run does not
// count.
static double time_of(struct problem *p, int who, int repeat)
{
	double t = 0;

	for (int r = -1; r < repeat; r++) {
		if (!r) {
			finish();
			t = yk_seconds();
		}
		if (who == BLAS)
			peer_sgemm(&p->s, p->host[1], p->host[2], p->host[0]);
		else if (who == VECTORS)
			for (int i = 0; i < p->s.m; i++)
				must(cl->run(queue, p->one_row, &p->one), "run");
		else
			must(cl->run(queue, p->handle[who], &p->op), "run");
	}
	finish();
	return (yk_seconds() - t) / repeat;
}

static double ratio_of(const double *a, const double *b)
{
	double r[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		r[i] = a[i] / b[i];
	return median(r, ROUNDS);
}

// Logarithms of ratios over shapes.
struct summary {
	int n;
	double logs, min;
};

static double note(struct summary *s, double ratio)
{
	s->n++;
	s->logs += log(ratio);
	s->min = s->n == 1 || ratio < s->min ? ratio : s->min;
	return ratio;
}

static struct summary to_blas, to_clblast, large_clblast, to_vectors;

static void measure(const struct peer_shape *s)
{
	double t[LIMIT][ROUNDS], flops = 2. * s->m * s->n * s->k * s->batch;
	bool there[LIMIT] = { false }, large = (double)s->m * s->n * s->k >= 512. * 512 * 512;
	int repeat[LIMIT], ours, library = -1, n = 0;
	struct problem p;

	problem_init(&p, s);
	ours = first_impl(p.impls);
	for (int i = 0; i < LIMIT; i++) {
		there[i] = i < IMPLS	  ? p.impls >> i & 1 :
			   i == BLAS	  ? peer_sgemm(s, p.host[1], p.host[2], p.host[0]) :
					    s->m > 1 && s->m <= 16 && s->batch == 1;
		const char *name = i < IMPLS && there[i] ?
					   cl->impl_name(device, &p.op, (uint32_t)i) : "";
		if (!strcmp(name, "clblast"))
			library = i;
		// for shapes that the others do not support
		if (!strcmp(name, "tiled") && i != ours)
			there[i] = false;
		n += there[i];
	}
	for (int i = 0; i < LIMIT; i++)
		if (there[i]) {
			double once = time_of(&p, i, 1), share = SECONDS / (n * ROUNDS);
			repeat[i] = once * 10000 < share ? 10000 : 1 + (int)(share / once);
		}
	for (int r = 0; r < ROUNDS; r++)
		for (int i = 0; i < LIMIT; i++)
			if (there[i])
				t[i][r] = time_of(&p, i, repeat[i]);
	printf("%4d %4d %4d %-3.0d %c%c", s->m, s->n, s->k, s->batch > 1 ? s->batch : 0,
	       "NT"[s->ta], "NT"[s->tb]);
	printf(" %7.1f %7.1f", flops / median(t[ours], ROUNDS) * 1e-9,
	       there[BLAS] ? flops / median(t[BLAS], ROUNDS) * 1e-9 : 0);
	printf(" %5.2f", there[BLAS] ? ratio_of(t[BLAS], t[ours]) : 0);
	if (there[BLAS] && large)
		note(&to_blas, ratio_of(t[BLAS], t[ours]));
	if (library >= 0) {
		double r = note(&to_clblast, ratio_of(t[library], t[ours]));
		if (large)
			note(&large_clblast, r);
		printf(" %7.2f", r);
	} else {
		printf("       -");
	}
	if (there[VECTORS])
		printf(" %7.2f", note(&to_vectors, ratio_of(t[VECTORS], t[ours])));
	else
		printf("       -");
	for (int i = 0; i < IMPLS; i++)
		if (there[i])
			printf("  %s %.3g ms", cl->impl_name(device, &p.op, (uint32_t)i),
			       median(t[i], ROUNDS) * 1e3);
	printf("\n");
	fflush(stdout);
	problem_fini(&p);
}

static void print(const char *what, const struct summary *s)
{
	if (s->n)
		printf("# %s: geometric mean %.2f, min %.2f of %d shapes\n", what,
		       exp(s->logs / s->n), s->min, s->n);
}

static bool parse(const char *text, struct peer_shape *s)
{
	const char *t = text + strcspn(text, "NT");

	*s = (struct peer_shape){ .batch = 1 };
	if (sscanf(text, "%dx%dx%dx%d", &s->m, &s->n, &s->k, &s->batch) < 3 || s->m < 1 ||
	    s->n < 1 || s->k < 1 || s->batch < 1)
		return false;
	s->ta = t[0] == 'T';
	s->tb = t[0] && t[1] == 'T';
	return true;
}

int main(int argc, char **argv)
{
	struct yoke_device_info info = { .size = sizeof info };
	struct peer_shape s;
	uint32_t n;

	if (argc < 2) {
		fprintf(stderr, "usage: contract_opencl MODULE [MxNxK[xBATCH][NT|TN|TT]]..\n");
		return 2;
	}
	if (!getenv("OMP_WAIT_POLICY")) { // a peer's threads must not spin while others run
		setenv("OMP_WAIT_POLICY", "passive", 1);
		execv("/proc/self/exe", argv);
	}
	const char *why = test_load(argv[1], &n);
	if (why) {
		fprintf(stderr, "contract_opencl: %s\n", why);
		return 1;
	}
	must(cl->device_info(device, &info), "device_info");
	must(cl->queue_new(device, YOKE_QUEUE_COMPUTE, &queue), "queue_new");
	printf("# %s, %s; peers: %s, CLBlast; medians of %d rounds, ratios of time\n",
	       info.name, info.driver, peer_sgemm_name(), ROUNDS);
	printf("%4s %4s %4s %-3s %-2s %7s %7s %5s %7s %7s\n", "M", "N", "K", "", "",
	       "GFLOP/s", "blas", "ratio", "clblast", "vectors");
	for (int i = 2; i < argc; i++)
		if (parse(argv[i], &s))
			measure(&s);
	for (size_t i = 0; argc == 2 && i < sizeof sizes / sizeof *sizes; i++)
		for (int t = 0; t < 3; t++) {
			s = (struct peer_shape){ sizes[i].m, sizes[i].n, sizes[i].k,
						 sizes[i].batch, .ta = t == 2, .tb = t == 1 };
			measure(&s);
		}
	print("from 512 cubed on, OpenBLAS", &to_blas);
	print("from 512 cubed on, CLBlast", &large_clblast);
	print("all, CLBlast", &to_clblast);
	print("few rows, as many products of a vector", &to_vectors);
	return 0;
}
