// SPDX-License-Identifier: Apache-2.0
// MAT files, versions 5 and 7.3, read with libmatio: column-major arrays [lines,samples,bands] or
// [lines,samples]. libmatio, and with it HDF5, is loaded when the first file is opened, so other
// programs never load it.
#include "config.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "data/cube.h"

#ifdef MATIO_LIBRARY

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <matio.h>

enum { DEFLATES = 1032 }; // max expansion ratio of deflate

// guards the variables below, and HDF5, which is not thread-safe
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define CALLS(X) \
	X(Mat_Open) X(Mat_Close) X(Mat_VarRead) X(Mat_VarReadInfo) X(Mat_VarReadNextInfo) \
	X(Mat_VarReadDataAll) X(Mat_VarFree) X(Mat_GetVersion)
#define MEMBER(name) __typeof__(&name) name;
#define PLACE(name) { #name, offsetof(struct calls, name) },
static struct calls {
	CALLS(MEMBER)
} mat;
static enum { UNTRIED, MISSING, THERE } state;

// HDF5, which libmatio uses, prints every error unless its handler is replaced; the handler is
// global, not per file.
typedef int set_fn(int64_t stack, void *handler, void *arg);    // H5Eset_auto2
typedef int get_fn(int64_t stack, void **handler, void **arg); // H5Eget_auto2
static set_fn *set_handler;
static get_fn *get_handler;

static bool is_there(void)
{
	static const struct {
		const char *name;
		size_t at;
	} call[] = { CALLS(PLACE) };
	if (state != UNTRIED)
		return state == THERE;
	void *library = dlopen(MATIO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	state = library ? THERE : MISSING;
	for (size_t i = 0; library && i < sizeof call / sizeof *call; i++) {
		void *symbol = dlsym(library, call[i].name);
		memcpy((char *)&mat + call[i].at, &symbol, sizeof symbol);
		state = symbol ? state : MISSING;
	}
	void *set = library ? dlsym(library, "H5Eset_auto2") : NULL,
	     *get = library ? dlsym(library, "H5Eget_auto2") : NULL;
	memcpy(&set_handler, &set, sizeof set_handler);
	memcpy(&get_handler, &get, sizeof get_handler);
	return state == THERE;
}

// ---- validation before libmatio ----
//
// libmatio trusts the lengths in a file and allocates memory for them.  So uncompressed elements of
// version 5 are checked first; for version 7.3, that the file is as long as its HDF5 superblock
// states.

enum { MATRIX = 14, PARTS = 1 << 20, DEPTH = 16 };

struct walk {
	const char *path;
	int fd;
	bool swap;
	int parts;
};

// Do the data elements from `at` lie within the bytes up to `end`?  Checks elements nested in
// matrices too.
static bool whole(struct walk *w, uint64_t at, uint64_t end, int depth)
{
	while (end - at >= 8) {
		uint32_t tag[2];
		if (++w->parts > PARTS || yk_file_read_at(w->fd, w->path, at, tag, sizeof tag) < 0)
			return false;
		for (int i = 0; i < 2 && w->swap; i++)
			tag[i] = __builtin_bswap32(tag[i]);
		const bool small = tag[0] >> 16;
		const uint64_t bytes = small ? 0 : tag[1];
		at += 8;
		if ((small && tag[0] >> 16 > 4) || bytes > end - at)
			return false;
		if (!small && tag[0] == MATRIX &&
		    (depth == DEPTH || !whole(w, at, at + bytes, depth + 1)))
			return false;
		const uint64_t padded = depth ? (bytes + 7) / 8 * 8 : bytes;
		at += padded < end - at ? padded : end - at;
	}
	return true;
}

// Is the end of file in the superblock, which follows MATLAB's 512 bytes, within the file ("HDF5
// File Format", II.A)?
static bool whole_hdf5(const char *path, int fd, uint64_t bytes)
{
	unsigned char head[52];
	if (bytes < 512 + sizeof head || yk_file_read_at(fd, path, 512, head, sizeof head) < 0 ||
	    memcmp(head, "\x89HDF\r\n\x1a\n", 8))
		return false;
	const int version = head[8],
		  at = version == 0 ? 40 :
		       version == 1 ? 44 :
				      28,
		  width = head[version < 2 ? 13 : 9];
	uint64_t end = 0;
	for (int k = 7; k >= 0; k--)
		end = end << 8 | head[at + k];
	return width != 8 || end <= bytes;
}

static int check(const char *path)
{
	unsigned char head[128];
	uint64_t bytes;
	struct walk w = { .path = path, .fd = yk_file_open(path, &bytes) };
	if (w.fd < 0)
		return w.fd;
	int err = bytes < sizeof head ?
			  yk_fail(YOKE_EFORMAT, "%s: is too short for a MAT file", path) :
			  yk_file_read_at(w.fd, path, 0, head, sizeof head);
	const bool little = !err && head[126] == 'I' && head[127] == 'M',
		   big = !err && head[126] == 'M' && head[127] == 'I';
	const int version = little || big ? head[little ? 125 : 124] : 0;
	w.swap = little == YK_HOST_BIG;
	if (!err && !memcmp(head, "\x89HDF\r\n\x1a\n", 8))
		err = yk_fail(
			YOKE_EFORMAT,
			"%s: is HDF5 without the header of a MAT file, as h5py writes it by itself; save the array as .npy, "
			"or with scipy.io.savemat",
			path);
	else if (!err && version != 1 && version != 2 && yk_file_kind(head, sizeof head))
		err = yk_file_refused(path, head, sizeof head, "a MAT file", "");
	if ((version == 1 && !whole(&w, sizeof head, bytes, 0)) ||
	    (version == 2 && !whole_hdf5(path, w.fd, bytes)))
		err = yk_fail(
			YOKE_EFORMAT,
			"%s: is truncated or damaged: its contents extend past the end of the file",
			path);
	close(w.fd);
	return err;
}

// ---- variables ----

static const struct yk_envi_type *type_of(const matvar_t *v)
{
	switch (v->class_type) {
	case MAT_C_EMPTY: // version 7.3 without a class, or with one that h5py padded: HDF5
			  // converts to the requested type
	case MAT_C_DOUBLE: return yk_envi_type_named("f64");
	case MAT_C_SINGLE: return yk_envi_type_named("f32");
	case MAT_C_UINT8: return yk_envi_type_named("u8");
	case MAT_C_INT16: return yk_envi_type_named("i16");
	case MAT_C_UINT16: return yk_envi_type_named("u16");
	case MAT_C_INT32: return yk_envi_type_named("i32");
	case MAT_C_UINT32: return yk_envi_type_named("u32");
	case MAT_C_INT64: return yk_envi_type_named("i64");
	case MAT_C_UINT64: return yk_envi_type_named("u64");
	default: return NULL;
	}
}

static bool may_be(const matvar_t *v)
{
	return (v->rank == 2 || v->rank == 3) && v->name && type_of(v) && !v->isComplex;
}

// Ranks variables: arrays with three axes come before images, and images before vectors, such as
// wavelengths.
static int rank_of(const matvar_t *v)
{
	if (!may_be(v))
		return 0;
	if (v->rank == 3)
		return 3;
	return v->dims[0] > 1 && v->dims[1] > 1 ? 2 : 1;
}

// The likely reason why libmatio lists no variables of a version 7.3 file.
static const char *hint_of(mat_t *f, bool listed)
{
	return !listed && mat.Mat_GetVersion(f) == MAT_FT_MAT73 ?
		       "; libmatio cannot list a file with an attribute MATLAB_class of variable length, as h5py "
		       "writes a str: write the attribute as np.bytes_(\"double\")" :
		       "";
}

// The first array of the most likely kind: three axes, else two, else a vector.
static matvar_t *find_likely(mat_t *f, const char *path)
{
	matvar_t *best = NULL, *v;
	int rank = 0;
	bool listed = false;
	while ((v = mat.Mat_VarReadNextInfo(f))) {
		const bool better = rank_of(v) > rank;
		rank = better ? rank_of(v) : rank;
		mat.Mat_VarFree(better ? best : v);
		best = better ? v : best;
		listed = true;
	}
	if (!best)
		yk_fail(YOKE_EFORMAT,
			"%s: has no real array [lines,samples,bands] or [lines,samples]%s", path,
			hint_of(f, listed));
	return best;
}

// The variable's description, without data; the caller frees it with Mat_VarFree.
static matvar_t *find(mat_t *f, const char *path, const char *name)
{
	if (!name)
		return find_likely(f, path);
	matvar_t *v = mat.Mat_VarReadInfo(f, name);
	if (!v) {
		matvar_t *any = mat.Mat_VarReadNextInfo(f);
		yk_fail(YOKE_ENOENT, "%s: has no variable %s%s", path, name, hint_of(f, any));
		mat.Mat_VarFree(any);
		return NULL;
	}
	if (may_be(v))
		return v;
	yk_fail(YOKE_EUNSUPPORTED,
		"%s: %s is no real array [lines,samples,bands] or [lines,samples] of u8 i16 i32 f32 f64 u16 u32 i64 or u64",
		path, name);
	mat.Mat_VarFree(v);
	return NULL;
}

// An open file; the thread that uses it holds the lock.
struct session {
	mat_t *file;
	void *handler, *arg; // HDF5's previous error handler
};

static int begin(struct session *s, const char *path)
{
	*s = (struct session){ .file = NULL };
	pthread_mutex_lock(&lock);
	if (!is_there())
		return yk_fail(YOKE_EUNSUPPORTED,
			       "%s: MAT files are read by %s, which is not installed", path,
			       MATIO_LIBRARY);
	if (set_handler && get_handler && get_handler(0, &s->handler, &s->arg) >= 0)
		set_handler(0, NULL, NULL);
	s->file = mat.Mat_Open(path, MAT_ACC_RDONLY);
	return s->file ? 0 : yk_fail(YOKE_EFORMAT, "%s: cannot be read as a MAT file", path);
}

static void end(struct session *s, matvar_t *v)
{
	if (v)
		mat.Mat_VarFree(v);
	if (s->file)
		mat.Mat_Close(s->file);
	if (set_handler && get_handler && state == THERE)
		set_handler(0, s->handler, s->arg);
	pthread_mutex_unlock(&lock);
}

static int take(yoke_cube *c, const matvar_t *v)
{
	const size_t bands = v->rank == 3 ? v->dims[2] : 1;
	struct stat s;
	c->envi = (struct yk_envi){ .lines = (int64_t)v->dims[0],
				    .samples = (int64_t)v->dims[1],
				    .bands = (int64_t)bands,
				    .type = type_of(v),
				    .interleave = YK_BSQ,
				    .scale = 1,
				    .ignore = NAN,
				    .big = YK_HOST_BIG }; // libmatio returns host byte order
	c->envi.bytes = (uint64_t)c->envi.type->width;
	if (!v->dims[0] || !v->dims[1] || !bands || v->dims[0] > INT32_MAX ||
	    v->dims[1] > INT32_MAX || bands > YK_ENVI_BANDS ||
	    __builtin_mul_overflow(c->envi.bytes, (uint64_t)v->dims[0], &c->envi.bytes) ||
	    __builtin_mul_overflow(c->envi.bytes, (uint64_t)v->dims[1], &c->envi.bytes) ||
	    __builtin_mul_overflow(c->envi.bytes, (uint64_t)bands, &c->envi.bytes) ||
	    stat(c->path, &s) < 0 ||
	    c->envi.bytes / (v->class_type == MAT_C_EMPTY ? 8 * DEFLATES : DEFLATES) >
		    (uint64_t)s.st_size)
		return yk_fail(YOKE_EFORMAT,
			       "%s: %s is %zu x %zu x %zu, which is larger than the file", c->path,
			       v->name, v->dims[0], v->dims[1], bands);
	c->columns = true;
	c->variable = strdup(v->name);
	c->data = strdup(c->path);
	return c->variable && c->data ? 0 : yk_fail(YOKE_ENOMEM, "cube_open: no memory");
}

int yk_mat_open(yoke_cube *c, const char *variable)
{
	struct session s;
	int err = check(c->path);
	if (err)
		return err;
	err = begin(&s, c->path);
	matvar_t *v = err ? NULL : find(s.file, c->path, variable);
	if (!err)
		err = v ? take(c, v) : yk_error_last();
	end(&s, v);
	return err;
}

// Reads a variable with its data; NULL: it cannot be read.
static matvar_t *read_variable(mat_t *f, const char *name)
{
	matvar_t *v = mat.Mat_VarReadInfo(f, name);
	if (!v)
		return NULL;
	if (v->class_type == MAT_C_EMPTY) {
		v->class_type = MAT_C_DOUBLE;
		v->data_type = MAT_T_DOUBLE;
		v->data_size = (int)sizeof(double);
	}
	if (!mat.Mat_VarReadDataAll(f, v))
		return v;
	mat.Mat_VarFree(v);
	return NULL;
}

// Is it still the array that the cube was opened with?
static bool is_same(const yoke_cube *c, const matvar_t *v)
{
	return type_of(v) == c->envi.type && (v->rank == 2 || v->rank == 3) &&
	       (int64_t)v->dims[0] == c->envi.lines && (int64_t)v->dims[1] == c->envi.samples &&
	       (int64_t)(v->rank == 3 ? v->dims[2] : 1) == c->envi.bands;
}

int yk_mat_read(const yoke_cube *c, void *to)
{
	struct session s;
	int err = begin(&s, c->path);
	matvar_t *v = err ? NULL : read_variable(s.file, c->variable);
	if (!err && (!v || !v->data || !is_same(c, v)))
		err = yk_fail(YOKE_EIO, "%s: %s cannot be read, or has changed", c->path,
			      c->variable);
	if (!err)
		memcpy(to, v->data, c->envi.bytes);
	end(&s, v);
	return err;
}

#else

int yk_mat_open(yoke_cube *c, const char *variable)
{
	(void)variable;
	return yk_fail(YOKE_EUNSUPPORTED,
		       "%s: this yoke was built without libmatio, which reads MAT files", c->path);
}

int yk_mat_read(const yoke_cube *c, void *to)
{
	(void)to;
	return yk_mat_open((yoke_cube *)c, NULL);
}

#endif
