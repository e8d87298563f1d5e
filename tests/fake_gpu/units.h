// SPDX-License-Identifier: Apache-2.0
// Models of the instructions of sm_80 that cl/prologue_cuda.h and cl/matrix_units.cl use: cp.async,
// ldmatrix, mma.sync and conversions of pairs, as the PTX ISA 9.0 defines them (9.7.9.25, 9.7.15).
// It shares nothing with the kernels. A copy may happen at any time between its issue and the wait
// for it. By turns of blocks all happen at once, all as late as possible, or each at some barrier
// in between, so that a missing wait or barrier, or another use of the destination, gives wrong
// results. Items may wait for their own copies only.

extern "C" long write(int file, const void *from, unsigned long bytes);

enum {
	FAKE_ITEMS = 1024,
	FAKE_COPIES = 256, // in flight, of an item
	FAKE_WARP = 32
};

static void fake_wrong(const char *what)
{
	unsigned long n = 0;
	while (what[n])
		n++;
	write(2, what, n);
	fake_state.access(fake_state.group, 0, 1, 0); // does not return
}

static inline unsigned fake_item()
{
	return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}

// Number of the block that runs. Shared memory is filled with ones before each block.
static unsigned fake_blocks;
static __attribute__((section("fake_shared"))) unsigned fake_block;

static inline unsigned fake_block_number()
{
	if (fake_block == ~0u)
		fake_block = ++fake_blocks;
	return fake_block;
}

static inline bool fake_late() { return fake_block_number() % 3 == 1; }
static inline bool fake_between() { return fake_block_number() % 3 == 2; }

// ---- cp.async ----

struct fake_copy {
	const void *from;
	void *to;
	int bytes;
	bool done;
};

// The copies that an item has in flight. A group of copies ends before the number `group[i]`.
static struct fake_flight {
	fake_copy copy[FAKE_COPIES];
	int copies, groups, group[FAKE_COPIES];
	unsigned random;
	bool hidden;    // copies have arrived that wgmma does not see yet
	unsigned block; // fake_block when this began
} fake_flights[FAKE_ITEMS];

// The item's, empty at its first use in a block.
static fake_flight *fake_flight_mine()
{
	fake_flight *f = &fake_flights[fake_item()];
	if (f->block != fake_block_number()) {
		f->copies = f->groups = 0;
		f->random = fake_block * 7919 + fake_item();
		f->hidden = false;
		f->block = fake_block;
	}
	return f;
}

static void fake_do_copy(fake_copy *c)
{
	struct __attribute__((aligned(16))) quad16 {
		unsigned char x[16];
	} q = {};
	if (c->done)
		return;
	c->done = true;
	for (int i = 0; i < c->bytes; i++)
		q.x[i] = ((const unsigned char *)c->from)[i];
	*(quad16 *)c->to = q;
}

#define COPY_QUAD(from, to, bytes) fake_copy_quad(from, to, bytes)
static void fake_copy_quad(const void *from, void *to, int bytes)
{
	fake_flight *f = fake_flight_mine();
	if (bytes < 0 || bytes > 16 || (unsigned long)from % 16 || (unsigned long)to % 16 ||
	    f->copies == FAKE_COPIES)
		fake_wrong(
			"fake_gpu: cp.async of a wrong size, at an odd address, or one too many\n");
	fake_copy *c = &f->copy[f->copies++];
	*c = { from, to, bytes, false };
	if (!fake_late() && !fake_between())
		fake_do_copy(c);
}

#define COPIES_COMMIT() fake_commit_copies()
static void fake_commit_copies()
{
	fake_flight *f = fake_flight_mine();
	if (f->groups == FAKE_COPIES)
		fake_wrong("fake_gpu: too many groups of copies\n");
	f->group[f->groups++] = f->copies;
}

#define COPIES_WAIT(n) fake_wait_copies(n)
static void fake_wait_copies(int left)
{
	fake_flight *f = fake_flight_mine();
	const int groups = f->groups - left;
	if (groups <= 0)
		return;
	const int n = f->group[groups - 1];
	for (int i = 0; i < n; i++)
		fake_do_copy(&f->copy[i]);
	f->hidden |= n > 0;
	for (int i = n; i < f->copies; i++)
		f->copy[i - n] = f->copy[i];
	f->copies -= n;
	for (int i = groups; i < f->groups; i++)
		f->group[i - groups] = f->group[i] - n;
	f->groups = left;
}

#undef __syncthreads
#define __syncthreads() fake_syncthreads(__LINE__)
static inline void fake_syncthreads(int site)
{
	fake_flight *f = fake_flight_mine();
	for (int i = 0; i < f->copies && fake_between(); i++) {
		f->random = f->random * 1664525u + 1013904223u;
		if (f->random >> 30 == 0)
			fake_do_copy(&f->copy[i]);
	}
	fake_state.barrier(fake_state.group, site);
}

// ---- registers of the lanes of a warp ----

// The lanes publish registers and then meet; by turns in two copies, so that none overwrites what
// another lane still reads.
union fake_registers {
	const unsigned char *line;
	struct {
		float a[4][4], b[2][4]; // by word, and element of it
	};
	struct {
		int whole_a[4][4], whole_b[2][4];
	};
};
static struct fake_turns {
	fake_registers lane[2][FAKE_WARP];
	unsigned turn[FAKE_WARP], block[FAKE_WARP];
} fake_warps[FAKE_ITEMS / FAKE_WARP];

// Where this lane publishes; the registers of all lanes after fake_meet.
static fake_registers *fake_publish(fake_registers **all)
{
	fake_turns *w = &fake_warps[fake_item() / FAKE_WARP];
	const unsigned lane = fake_item() % FAKE_WARP;
	if (w->block[lane] != fake_block_number()) {
		w->block[lane] = fake_block;
		w->turn[lane] = 0;
	}
	*all = w->lane[w->turn[lane]++ % 2];
	return *all + lane;
}

static inline void fake_meet(int site)
{
	fake_state.exchange(fake_state.group, site, FAKE_SYNC, 0xffffffffu, 0, 0);
}

// ---- ldmatrix ----

// The compiler's model of the four words that a lane receives: word i of matrix i.
template <bool exchanged> static void fake_load(unsigned *to, const void *at)
{
	fake_registers *all, *mine = fake_publish(&all);
	const unsigned lane = fake_item() % FAKE_WARP;

	if ((unsigned long)at % 16 || (char *)at < __start_fake_shared ||
	    (char *)at + 16 > __stop_fake_shared)
		fake_wrong("fake_gpu: ldmatrix from an odd address, or not from shared memory\n");
	mine->line = (const unsigned char *)at;
	fake_meet(__LINE__);
	for (unsigned i = 0; i < 4; i++) {
		unsigned short pair[2];
		for (unsigned k = 0; k < 2; k++) {
			const unsigned line = exchanged ? lane % 4 * 2 + k : lane / 4;
			const unsigned column = exchanged ? lane / 4 : lane % 4 * 2 + k;
			pair[k] = ((const unsigned short *)all[8 * i + line].line)[column];
		}
		to[i] = pair[0] | (unsigned)pair[1] << 16;
	}
}
#define MATRIX_LOAD(to, at, form) fake_load<sizeof(form) != 1>(to, at)

// ---- mma.sync ----

static inline float fake_number(unsigned short bits, int type)
{
	return type == 3 ? fake_f32_of_f16(bits) : __uint_as_float((unsigned)bits << 16);
}

// The elements of a word, which lie along k.
template <int type> static void fake_unpack(float *to, unsigned word)
{
	if (type == 1) {
		to[0] = __uint_as_float(word & 0xffffe000u); // tf32: the other bits are ignored
	} else {
		to[0] = fake_number((unsigned short)word, type);
		to[1] = fake_number((unsigned short)(word >> 16), type);
	}
}

// m16n8: rows of a are lane / 4 and 8 more, columns of b lane / 4. Words are of elements along k
// from (lane % 4) times their number on; words 2 and 3 of a, and 1 of b, of the second half of the
// steps. Sums are of columns 2 (lane % 4) and 1 more; sums 2 and 3 of row + 8.
template <int type> static void fake_mma(float *c, const unsigned *a, const unsigned *b)
{
	enum { EACH = type == 1 ? 1 : 2 };
	fake_registers *all, *mine = fake_publish(&all);
	const unsigned lane = fake_item() % FAKE_WARP;

	for (int i = 0; i < 4; i++)
		fake_unpack<type>(mine->a[i], a[i]);
	for (int i = 0; i < 2; i++)
		fake_unpack<type>(mine->b[i], b[i]);
	fake_meet(__LINE__);
	for (unsigned i = 0; i < 4; i++) {
		const fake_registers *x = all + lane / 4 * 4, *y = all + (lane % 4 * 2 + i % 2) * 4;
		float sum = c[i];
		for (unsigned half = 0; half < 2; half++)
			for (unsigned k = 0; k < 4; k++)
				for (unsigned e = 0; e < EACH; e++)
					sum = fmaf(x[k].a[half * 2 + i / 2][e], y[k].b[half][e],
						   sum);
		c[i] = sum;
	}
}

template <int type> static void fake_mma(int *c, const unsigned *a, const unsigned *b)
{
	fake_registers *all, *mine = fake_publish(&all);
	const unsigned lane = fake_item() % FAKE_WARP;

	for (unsigned i = 0; i < 4; i++)
		for (unsigned e = 0; e < 4; e++) {
			const unsigned x = a[i] >> 8 * e & 0xff, y = b[i % 2] >> 8 * e & 0xff;
			mine->whole_a[i][e] = type == 5 ? (signed char)x : (int)x;
			mine->whole_b[i % 2][e] = type == 5 ? (signed char)y : (int)y;
		}
	fake_meet(__LINE__);
	for (unsigned i = 0; i < 4; i++) {
		const fake_registers *x = all + lane / 4 * 4, *y = all + (lane % 4 * 2 + i % 2) * 4;
		unsigned sum = (unsigned)c[i]; // wraps
		for (unsigned half = 0; half < 2; half++)
			for (unsigned k = 0; k < 4; k++)
				for (unsigned e = 0; e < 4; e++)
					sum += (unsigned)(x[k].whole_a[half * 2 + i / 2][e] *
							  y[k].whole_b[half][e]);
		c[i] = (int)sum;
	}
}
#define MATRIX_MMA(c, a, b) fake_mma<MATRIX>(c, a, b)

// ---- conversions ----

// cvt.rn.f16x2.f32 and cvt.rn.bf16x2.f32
template <int type> static unsigned fake_pair(float low, float high)
{
	unsigned bits[2];
	const float x[2] = { low, high };
	for (int i = 0; i < 2; i++) {
		const unsigned b = __float_as_uint(x[i]);
		bits[i] = type == 3    ? fake_f16_of_f32(x[i]) :
			  x[i] != x[i] ? 0x7fffu :
					 (b + 0x7fffu + (b >> 16 & 1u)) >> 16;
	}
	return bits[0] | bits[1] << 16;
}
#define MATRIX_PAIR(to, low, high) ((to) = fake_pair<MATRIX>(low, high))

// cvt.rna.tf32.f32
static inline unsigned fake_tf32(float x)
{
	const unsigned b = __float_as_uint(x);
	return (b & 0x7f800000u) == 0x7f800000u ? b : (b + 0x1000u) & 0xffffe000u;
}
#define MATRIX_TF32(to, x) ((to) = fake_tf32(x))
