// SPDX-License-Identifier: Apache-2.0
// Cache of compiled kernels.  An entry is a file named after the hash of its key: a header, the
// key, the data.  A file is accepted only if it and its directory belong to the user, the lengths
// and the key match and the checksum is right; anything else is a miss.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "kernel/cache.h"
#include "yoke-plugin.h"

#define MAX_BYTES ((size_t)64 << 20)   // limit of one entry, and of all entries in memory
#define MAX_KEY ((size_t)1 << 20)
#define BUCKETS 256
#define SWEEP 64 // files that a process writes between two sweeps of the directory

// The same layout in files and in memory, so that one check serves both.
struct header {
	char magic[8];
	uint64_t key_bytes, bytes;
	uint64_t checksum; // XXH64 of key and data
};

struct entry {
	struct entry *next;
	uint64_t hash;
	struct header header;
	char content[]; // key, then data
};

static const char magic[] = "yokekrn1"; // a file has no 0 after it
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects the next two
static struct entry *bucket[BUCKETS];
static size_t kept;

// ---- memory ----

static struct entry *entry_new(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
	struct entry *e = malloc(sizeof *e + key_bytes + bytes);
	if (!e)
		return NULL;
	memcpy(e->content, key, key_bytes);
	memcpy(e->content + key_bytes, data, bytes);
	memcpy(e->header.magic, magic, sizeof e->header.magic);
	e->header.key_bytes = key_bytes;
	e->header.bytes = bytes;
	e->header.checksum = yk_hash(e->content, key_bytes + bytes, 0);
	e->hash = yk_hash(key, key_bytes, 0);
	return e;
}

static bool is(const struct entry *e, const void *key, size_t key_bytes)
{
	return e->header.key_bytes == key_bytes && !memcmp(e->content, key, key_bytes);
}

// The link that points to a key's entry, or to NULL at the end of its bucket; with the lock held.
static struct entry **find(uint64_t hash, const void *key, size_t key_bytes)
{
	struct entry **at = &bucket[hash % BUCKETS];
	while (*at && !((*at)->hash == hash && is(*at, key, key_bytes)))
		at = &(*at)->next;
	return at;
}

// Takes ownership of the entry; one that exceeds the memory limit is freed.
static bool remember(struct entry *e)
{
	size_t bytes = e->header.key_bytes + e->header.bytes;

	pthread_mutex_lock(&lock);
	struct entry **at = find(e->hash, e->content, e->header.key_bytes), *old = *at;
	if (old) {
		*at = old->next;
		kept -= old->header.key_bytes + old->header.bytes;
		free(old);
	}
	bool fits = bytes <= MAX_BYTES - kept;
	if (fits) {
		e->next = bucket[e->hash % BUCKETS];
		bucket[e->hash % BUCKETS] = e;
		kept += bytes;
	}
	pthread_mutex_unlock(&lock);
	if (!fits)
		free(e);
	return fits;
}

// ---- files ----

static void file_name(char to[40], const void *key, size_t key_bytes)
{
	snprintf(to, 40, "%016llx%016llx.krn", (unsigned long long)yk_hash(key, key_bytes, 0),
		 (unsigned long long)yk_hash(key, key_bytes, 1));
}

static bool read_all(int fd, void *to, size_t bytes)
{
	for (char *at = to; bytes; ) {
		ssize_t n = read(fd, at, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
	for (const char *at = from; bytes; ) {
		ssize_t n = write(fd, at, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

static struct entry *read_entry(int fd, const void *key, size_t key_bytes)
{
	struct header h;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !yk_cache_ours(&st) ||
	    !read_all(fd, &h, sizeof h))
		return NULL;
	if (memcmp(h.magic, magic, sizeof h.magic) || h.key_bytes != key_bytes ||
	    h.bytes > MAX_BYTES || (uint64_t)st.st_size != sizeof h + h.key_bytes + h.bytes)
		return NULL;
	struct entry *e = malloc(sizeof *e + key_bytes + h.bytes);
	if (!e)
		return NULL;
	e->header = h;
	e->hash = yk_hash(key, key_bytes, 0);
	if (read_all(fd, e->content, key_bytes + h.bytes) && is(e, key, key_bytes) &&
	    h.checksum == yk_hash(e->content, key_bytes + h.bytes, 0))
		return e;
	free(e);
	return NULL;
}

static struct entry *file_get(const void *key, size_t key_bytes)
{
	char name[40];
	struct entry *e = NULL;

	int dir = yk_cache_folder(false);
	if (dir < 0)
		return NULL;
	file_name(name, key, key_bytes);
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		e = read_entry(fd, key, key_bytes);
		if (e) // marks it as used: the sweep removes entries in LRU order
			futimens(fd, NULL);
		else
			yk_info("cache", "%s is damaged or belongs to another user; "
				"rebuilding", name);
		close(fd);
	}
	close(dir);
	return e;
}

// No fsync: a torn file fails its checksum and costs one compilation.
static int file_put(const struct entry *e)
{
	static atomic_uint serial, written;
	char name[40], temporary[80];

	int dir = yk_cache_folder(true);
	if (dir < 0)
		return YOKE_EIO;
	file_name(name, e->content, e->header.key_bytes);
	snprintf(temporary, sizeof temporary, "%s.%ld.%u", name, (long)getpid(),
		 atomic_fetch_add(&serial, 1));
	int code = YOKE_EIO;
	int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0) {
		bool good = write_all(fd, &e->header, sizeof e->header) &&
			    write_all(fd, e->content, e->header.key_bytes + e->header.bytes);
		good = !close(fd) && good;
		if (good && !renameat(dir, temporary, dir, name))
			code = 0;
		else
			unlinkat(dir, temporary, 0);
	}
	if (atomic_fetch_add(&written, 1) % SWEEP == 0)
		yk_cache_sweep(dir);
	close(dir);
	return code;
}

// ---- entry points ----

static int64_t copy_out(const struct entry *e, void *to, size_t cap)
{
	if (cap)
		memcpy(to, e->content + e->header.key_bytes,
		       e->header.bytes < cap ? e->header.bytes : cap);
	return (int64_t)e->header.bytes;
}

int64_t yk_cache_get(const void *key, size_t key_bytes, void *to, size_t cap)
{
	if (!key || key_bytes > MAX_KEY || (!to && cap))
		return YOKE_EINVAL;
	uint64_t hash = yk_hash(key, key_bytes, 0);
	pthread_mutex_lock(&lock);
	struct entry *e = *find(hash, key, key_bytes);
	int64_t bytes = e ? copy_out(e, to, cap) : YOKE_ENOENT;
	pthread_mutex_unlock(&lock);
	if (e || !(e = file_get(key, key_bytes)))
		return bytes;
	bytes = copy_out(e, to, cap);
	remember(e);
	return bytes;
}

int yk_cache_put(const void *key, size_t key_bytes, const void *data, size_t bytes)
{
	if (!key || key_bytes > MAX_KEY || (!data && bytes) || bytes > MAX_BYTES)
		return YOKE_EINVAL;
	struct entry *e = entry_new(key, key_bytes, data ? data : "", bytes);
	if (!e)
		return YOKE_ENOMEM;
	int code = file_put(e);
	return remember(e) ? 0 : code;
}
