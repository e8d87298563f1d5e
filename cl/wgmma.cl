// SPDX-License-Identifier: Apache-2.0
// Products by warp groups: wgmma of NVIDIA's sm_90a (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions"). This text and those that include it are CUDA C++ only.
// A warp group is 128 neighbouring items, from a multiple of 128 on. It adds 64 lines of a times N
// columns of b, over 16 steps of k, to sums in f32. Elements are f16 (MATRIX 3) or bf16 (4).
// A tile in local memory consists of rows of 128 bytes and is aligned to 1024. A row holds 64
// neighbouring steps of a line or, in the turned form, 64 neighbouring lines of a step; turned
// lines are in blocks of 64 that are `apart` bytes from each other. The 8 quads of a row are
// exchanged by the row's number (the 128-byte swizzle), so that no two rows that are read together
// share banks.
#ifndef MATRIX
#define MATRIX 4
#endif
#include "half.cl"

#define WG_ITEMS 128
#define WG_LINES 64 // of a
#define WG_K 16     // steps of an instruction
#define WG_ROW 64   // elements of a row of a tile
// Eight rows of a tile: the element of a LOCAL_SIZED array of tiles.
struct __attribute__((aligned(1024))) wg_rows {
	ushort x[8 * WG_ROW];
};

// The place, in elements, of a quad of a row of a tile.
FN int wg_place(int row, int quad) { return row * WG_ROW + (quad ^ (row & 7)) * 8; }

// The number of the warp group, which the compiler then knows to be the same for a warp.
FN int wg_number(int item) { return __shfl_sync(0xffffffffu, item / WG_ITEMS, 0); }

// Item `lane` of a warp group holds sum i of a line and a column; pairs of columns are neighbours.
FN int wg_line(int i, int lane) { return lane / 32 * 16 + i / 2 % 2 * 8 + lane % 32 / 4; }
FN int wg_column(int i, int lane) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

// ---- descriptors of tiles ----

// Bits 0..13: address; 16..29: bytes between blocks of turned lines; 32..45: bytes between groups
// of 8 rows; all in units of 16 bytes; 62..63: 1 for the 128-byte swizzle.
FN ulong wg_tile(const void *tile, int apart)
{
	ulong address = (ulong)__cvta_generic_to_shared(tile);
	return (address & 0x3ffff) >> 4 | (ulong)(apart / 16 & 0x3fff) << 16 |
	       (ulong)(1024 / 16) << 32 | (ulong)1 << 62;
}

// The tile from a number of bytes on: multiples of 1024, and within a row multiples of 32.
FN ulong wg_from(ulong tile, int bytes) { return tile + (ulong)(bytes / 16); }

// The bytes of 16 steps.
#define WG_STEP(turned) ((turned) ? WG_K * 128 : WG_K * 2)

// ---- instructions; tests define a model of them ----

// WG_TILES declares an array of wg_rows whose bytes the launch assigns.
// wg_multiply<type, turned_a, turned_b>(sums, a, b, add): sums = a b, plus sums if `add`; a and b
// are tiles. In wg_multiply_held a's elements are in registers: an item holds those that it would
// hold of 64 x 16 sums, in order, packed by wg_pair<type>(low, high). Multiplications run
// asynchronously, one after another. WG_FENCE precedes those after other accesses of their
// registers. WG_COMMIT closes a group of them, WG_WAIT(n) waits until at most n of the latest
// groups run, and wg_settle then marks the sums as readable.
// wg_before(x) makes the item compute x, which is not negative, before what follows; wg_here(p)
// makes it compute what depends on p after what precedes.
// WG_VISIBLE, before the barrier, makes what the item has copied (quad_copy) or stored in local
// memory visible to multiplications.
#ifndef WG_INSTRUCTIONS
#define WG_TILES(name, n) LOCAL_SIZED(struct wg_rows, name, n)
#define WG_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WG_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WG_WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")
#define WG_VISIBLE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
template <class T> FN void wg_here(T *&p) { asm volatile("" : "+l"(p)); }
// A branch, because the compiler would move a following WG_WAIT before the computation of x.
FN void wg_before(float x)
{
	if (x < 0.0f)
		asm volatile("nanosleep.u32 1;" ::: "memory");
}
template <int n> FN void wg_settle(float (&x)[n])
{
	UNROLL
	for (int i = 0; i < n; i++)
		asm volatile("" : "+f"(x[i])::"memory");
}

#if MATRIX == 3
#define WG_NAME(columns) "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.f16.f16"
#else
#define WG_NAME(columns) "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16"
#endif
template <int type> FN uint wg_pair(float low, float high)
{
	uint word;
#if MATRIX == 3
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#else
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#endif
	return word;
}

#define WG_32 \
	"%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WG_64 \
	WG_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
	"%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WG_128 \
	WG_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
	"%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
	"%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
	"%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WG_OUT_8(x, i) \
	"+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define WG_OUT_32(x, i) WG_OUT_8(x, i), WG_OUT_8(x, i + 8), WG_OUT_8(x, i + 16), WG_OUT_8(x, i + 24)
#define WG_OUT_64(x) WG_OUT_32(x, 0), WG_OUT_32(x, 32)
#define WG_OUT_128(x) WG_OUT_64(x), WG_OUT_32(x, 64), WG_OUT_32(x, 96)

// For N columns: the list of the sums, their registers, and the numbers of the operands after them.
#define WG_DEFINE(columns, list, registers, r0, r1, r2, r3, r4, r5, r6) \
	template <int type, int turned_a, int turned_b> \
	FN void wg_multiply(float (&sums)[columns / 2], ulong a, ulong b, int add) \
	{ \
		asm volatile("{ .reg .pred p; setp.ne.b32 p, " r2 ", 0; " WG_NAME(#columns) " {" list "}, " r0 ", " r1 ", p, 1, 1, " r3 ", " r4 "; }" \
		    : registers \
		    : "l"(a), "l"(b), "r"(add), "n"(turned_a), "n"(turned_b) \
		    : "memory"); \
	} \
	template <int type, int turned_b> \
	FN void wg_multiply_held(float (&sums)[columns / 2], const uint (&a)[4], ulong b, int add) \
	{ \
		asm volatile("{ .reg .pred p; setp.ne.b32 p, " r5 ", 0; " WG_NAME(#columns) " {" list "}, {" r0 ", " r1 ", " r2 ", " r3 "}, " r4 ", p, 1, 1, " r6 "; }" \
		    : registers \
		    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(turned_b) \
		    : "memory"); \
	}
WG_DEFINE(64, WG_32, WG_OUT_32(sums, 0), "%32", "%33", "%34", "%35", "%36", "%37", "%38")
WG_DEFINE(128, WG_64, WG_OUT_64(sums), "%64", "%65", "%66", "%67", "%68", "%69", "%70")
WG_DEFINE(256, WG_128, WG_OUT_128(sums), "%128", "%129", "%130", "%131", "%132", "%133", "%134")
#endif
