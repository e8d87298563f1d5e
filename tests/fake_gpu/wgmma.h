// SPDX-License-Identifier: Apache-2.0
// A model of the instructions that cl/wgmma.cl uses, for texts compiled for sm_90a: wgmma with its
// descriptors, swizzles and register fragments, as the PTX ISA 9.0 defines them (9.7.15,
// "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"). It shares nothing with
// the kernels. units.h has the copies.
// An asynchronous product may happen at any time until it is waited for. In some blocks it happens
// at once, in the others as late as possible. Missing fences, and descriptors that differ within a
// warp group, end the launch.
#define WG_INSTRUCTIONS
// GCC does not check accesses to variables of large alignment, so tiles are aligned within one.
#define WG_TILES(name, n) \
	__shared__ __attribute__((aligned(16))) char name##_room[((n) + 1) * 1024]; \
	wg_rows *const name = (wg_rows *)(((unsigned long)name##_room + 1023) & ~1023ul)

enum {
	FAKE_PRODUCTS = 64, // in flight, of an item
	FAKE_SAME = 256     // products whose descriptors are compared
};

struct fake_product {
	float *sums;
	unsigned long a, b; // descriptors
	int columns, type, add;
	bool is_held, turned_a, turned_b;
	unsigned held[4][4]; // registers of the four lanes that share rows with this one
};

// The products that an item has in flight. A group of them ends before the number `group[i]`.
static struct fake_products {
	fake_product product[FAKE_PRODUCTS];
	int products, groups, group[FAKE_PRODUCTS];
	unsigned issued; // so far
	bool fenced;
	unsigned block; // fake_block when this began
} fake_all_products[FAKE_ITEMS];
static struct {
	unsigned long a, b;
	unsigned number, block;
} fake_same[FAKE_ITEMS / 128][FAKE_SAME];

// The item's, empty at its first use in a block.
static fake_products *fake_mine()
{
	fake_products *f = &fake_all_products[fake_item()];
	if (f->block != fake_block_number()) {
		f->products = f->groups = 0;
		f->issued = 0;
		f->fenced = false;
		f->block = fake_block;
	}
	return f;
}

// ---- shared memory ----

// Address 0 of shared memory, which begins at about 1024, where the driver's own ends.
static inline unsigned long fake_shared_base()
{
	return ((unsigned long)__start_fake_shared & ~1023ul) - 1024;
}

static inline unsigned long __cvta_generic_to_shared(const void *p)
{
	return (unsigned long)p - fake_shared_base();
}

// The element at a position of a matrix, `mn` along M or N: the canonical layouts of "Strides", in
// units of 16-bit elements, swizzled by the address.
static unsigned short fake_element(unsigned long descriptor, bool mn_major, int mn, int k)
{
	const unsigned start = (unsigned)(descriptor & 0x3fff) << 4;
	const unsigned leading = (unsigned)(descriptor >> 16 & 0x3fff) << 4,
		       stride = (unsigned)(descriptor >> 32 & 0x3fff) << 4;
	const unsigned base = (unsigned)(descriptor >> 49 & 7), mode = (unsigned)(descriptor >> 62);
	// of a row of the swizzle atom
	const int quads = mode == 0 ? 1 : mode == 1 ? 8 : mode == 2 ? 4 : 2;
	unsigned at = start;

	if (!mn_major && !mode) // ((8,m),(T,2k)):((1T,SBO),(1,LBO))
		at += mn % 8 * 16 + mn / 8 * stride + k % 8 * 2 + k / 8 * leading;
	else if (!mn_major)     // ((8,m),(T,2k)):((quads T,SBO),(1,T))
		at += mn % 8 * quads * 16 + mn / 8 * stride + k * 2;
	else if (!mode)         // ((T,1,m),(8,k)):((1,T,SBO),(1T,LBO))
		at += mn % 8 * 2 + mn / 8 * stride + k % 8 * 16 + k / 8 * leading;
	else                    // ((T,quads,m),(8,k)):((1,T,LBO),(quads T,SBO))
		at += mn % (8 * quads) * 2 + mn / (8 * quads) * leading + k % 8 * quads * 16 +
		      k / 8 * stride;
	// Swizzle<log2 quads, 4, 3>; the pattern begins `base` rows of 128 bytes after a multiple
	// of 1024
	at ^= ((at >> 7) - base & (unsigned)(quads - 1)) << 4;
	const char *from = (const char *)(fake_shared_base() + at);
	if (from < __start_fake_shared || from + 2 > __stop_fake_shared)
		fake_wrong("fake_gpu: a matrix descriptor leaves shared memory\n");
	return *(const unsigned short *)from;
}

// ---- products ----

// The item's part of D = A B + D: "Matrix Fragments for wgmma.mma_async.m64nNk16".
static void fake_multiply(const fake_product *p)
{
	const int t = (int)(fake_item() % 128), warp = t / 32, lane = t % 32;
	float a[2][16];

	for (int r = 0; r < 2; r++)
		for (int k = 0; k < 16; k++) {
			// a lane holds columns 2 (lane % 4) + 0, 1 and 8 more; words 1 and 3 are of
			// row + 8
			const unsigned word = p->held[k % 8 / 2][k / 8 * 2 + r];
			const unsigned short bits =
				p->is_held ? (unsigned short)(k % 2 ? word >> 16 : word) :
					     fake_element(p->a, p->turned_a,
							  16 * warp + lane / 4 + 8 * r, k);
			a[r][k] = fake_number(bits, p->type);
		}
	for (int j = 0; j < p->columns / 8; j++)
		for (int c = 0; c < 2; c++) {
			float b[16];
			for (int k = 0; k < 16; k++)
				b[k] = fake_number(fake_element(p->b, p->turned_b,
								8 * j + lane % 4 * 2 + c, k),
						   p->type);
			for (int r = 0; r < 2; r++) {
				float *d = &p->sums[4 * j + 2 * r + c], sum = p->add ? *d : 0.0f;
				for (int k = 0; k < 16; k++)
					sum = fmaf(a[r][k], b[k], sum);
				*d = sum;
			}
		}
}

static void fake_issue(const fake_product *p)
{
	fake_products *f = fake_mine();
	auto *same = &fake_same[fake_item() / 128][f->issued % FAKE_SAME];

	if (blockDim.x * blockDim.y * blockDim.z % 128)
		fake_wrong("fake_gpu: wgmma in a block without whole warp groups\n");
	if (!f->fenced)
		fake_wrong("fake_gpu: no wgmma.fence precedes wgmma\n");
	for (unsigned i = 0; i < blockDim.x * blockDim.y * blockDim.z; i++)
		if (fake_flights[i].hidden && fake_flights[i].block == fake_block)
			fake_wrong(
				"fake_gpu: no fence.proxy.async follows cp.async before wgmma\n");
	// the first item of the group states the descriptors of its product of a number
	f->issued++;
	if (same->number != f->issued || same->block != fake_block)
		*same = { p->a, p->b, f->issued, fake_block };
	else if (same->a != p->a || same->b != p->b)
		fake_wrong("fake_gpu: descriptors differ within a warp group\n");
	if (f->products == FAKE_PRODUCTS)
		fake_wrong("fake_gpu: too many products in flight\n");
	if (!fake_late())
		fake_multiply(p);
	f->product[f->products++] = *p;
}

template <int type, int turned_a, int turned_b, int n>
static void wg_multiply(float (&sums)[n], unsigned long a, unsigned long b, int add)
{
	const fake_product p = { sums,          a, b, 2 * n, type, add, false, turned_a != 0,
				 turned_b != 0, {} };
	fake_issue(&p);
}

template <int type, int turned_b, int n>
static void wg_multiply_held(float (&sums)[n], const unsigned (&a)[4], unsigned long b, int add)
{
	fake_product p = { sums, 0, b, 2 * n, type, add, true, false, turned_b != 0, {} };
	for (int from = 0; from < 4; from++)
		for (int i = 0; i < 4; i++)
			p.held[from][i] = fake_shuffle(__LINE__, 0xffffffffu, a[i],
						       (fake_lane() & ~3u) + (unsigned)from);
	fake_issue(&p);
}

#define WG_FENCE() ((void)(fake_mine()->fenced = true))
#define WG_VISIBLE() ((void)(fake_flight_mine()->hidden = false))
#define WG_COMMIT() fake_commit()
static void fake_commit()
{
	fake_products *f = fake_mine();
	if (f->groups == FAKE_PRODUCTS)
		fake_wrong("fake_gpu: too many groups of products\n");
	f->group[f->groups++] = f->products;
}

#define WG_WAIT(n) fake_wait(n)
static void fake_wait(int left)
{
	fake_products *f = fake_mine();
	const int groups = f->groups - left;
	f->fenced = false; // registers are accessed
	if (groups <= 0)
		return;
	const int n = f->group[groups - 1];
	for (int i = 0; i < n && fake_late(); i++)
		fake_multiply(&f->product[i]);
	for (int i = n; i < f->products; i++)
		f->product[i - n] = f->product[i];
	f->products -= n;
	for (int i = groups; i < f->groups; i++)
		f->group[i - groups] = f->group[i] - n;
	f->groups = left;
}

template <int n> static void wg_settle(float (&sums)[n])
{
	const fake_products *f = fake_mine();
	for (int i = 0; i < f->products; i++)
		if (f->product[i].sums == sums)
			fake_wrong("fake_gpu: sums are read while their products are in flight\n");
}

// ---- what the compiler of the host does anyway ----

static inline void wg_before(float) {}
template <class T> static inline void wg_here(T *&) {}

template <int type> static unsigned wg_pair(float low, float high)
{
	return fake_pair<type>(low, high);
}
