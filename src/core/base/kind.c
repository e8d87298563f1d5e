// SPDX-License-Identifier: Apache-2.0
// Recognizes kinds of files by their first bytes.
#include "config.h"

#include "base/kind.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"

static const char
	pointer[] = "a Git LFS pointer, not the file: fetch the file with `git lfs pull`",
	annex[] = "a git-annex pointer, not the file: fetch the file with `git annex get`",
	pickle[] =
		"a Python pickle, which is never loaded, since it runs code; save the tensors as .safetensors or .npy",
	wide[] = "UTF-16 text; save it as UTF-8", wider[] = "UTF-32 text; save it as UTF-8",
	page[] = "an HTML page, probably from a failed download; download the file again",
	download_error[] = "the error text of a failed download; download the file again";

static const struct {
	const char *begin; // magic bytes at offset 0
	uint8_t bytes;
	const char *what;
} kinds[] = {
#define KIND(begin, what) { begin, sizeof begin - 1, what },
	KIND("version https://git-lfs.github.com/spec/", pointer)
	KIND("version https://hawser.github.com/spec/", pointer)
	KIND("/annex/objects/", annex)
	KIND("PK\3\4", "a zip archive; unpack it, or, if it is a PyTorch checkpoint, save the "
		"tensors as .safetensors")
	KIND("PK\5\6", "an empty zip archive")
	KIND("\x1f\x8b", "a gzip file; unpack it")
	KIND("BZh", "a bzip2 file; unpack it")
	KIND("\xfd" "7zXZ", "an xz file; unpack it")
	KIND("\x28\xb5\x2f\xfd", "a zstd file; unpack it")
	KIND("7z\xbc\xaf\x27\x1c", "a 7-zip archive; unpack it")
	KIND("Rar!", "a RAR archive; unpack it")
	KIND("\x93NUMPY", "a NumPy array (.npy)")
	KIND("\x89HDF\r\n\x1a\n", "an HDF5 file")
	KIND("MATLAB 5.0 MAT-file", "a MAT file of version 5")
	KIND("MATLAB 7.3 MAT-file", "a MAT file of version 7.3")
	KIND("GGUF", "a GGUF file")
	KIND("PAR1", "a Parquet file")
	KIND("ARROW1", "an Arrow file")
	KIND("SQLite format 3", "an SQLite database")
	KIND("\x89PNG\r\n\x1a\n", "a PNG image")
	KIND("\xff\xd8\xff", "a JPEG image")
	KIND("GIF8", "a GIF image")
	KIND("II*\0", "a TIFF image")
	KIND("MM\0*", "a TIFF image")
	KIND("%PDF-", "a PDF document")
	KIND("\x7f" "ELF", "a program (ELF)")
	KIND("\xff\xfe\0\0", wider)
	KIND("\0\0\xfe\xff", wider)
	KIND("\xff\xfe", wide)
	KIND("\xfe\xff", wide)
	KIND("MMIDIDX\0\0", "the index of a Megatron data set; its tokens are in the .bin file beside it")
	KIND("\x88\xd8\x34\x01", "a token file of llm.c, of GPT-2's tokens; give format=u16:1024 vocab=50257")
	KIND("\xa1\xd9\x34\x01", "a token file of llm.c, of Llama 3's tokens; give format=u32:1024 vocab=128256")
	KIND("Entry not found", download_error)
	KIND("Invalid username or password", download_error)
	KIND("Repository not found", download_error)
	KIND("Access to model ", download_error)
	KIND("404: Not Found", download_error)
};

// Protocol 2 or later: the protocol number, then an opcode that can begin a pickle.
static bool is_pickle(const unsigned char *s, size_t n)
{
	return n > 3 && s[0] == 0x80 && s[1] >= 2 && s[1] <= 5 &&
	       memchr("\x95\x8a\x8c}](cqXKMN", s[2], 12);
}

// UTF-16 without a byte order mark, most of whose letters are ASCII: every other byte is 0.
static bool is_wide(const unsigned char *s, size_t n)
{
	size_t zeros[2] = { 0 };
	n = n > 64 ? 64 : n & ~(size_t)1;
	for (size_t i = 0; i < n; i++)
		if (!s[i])
			zeros[i & 1]++;
		else if (s[i] != '\n' && s[i] != '\r' && s[i] != '\t' && (s[i] < ' ' || s[i] > '~'))
			return false;
	return n >= 8 &&
	       ((zeros[0] == 0 && zeros[1] == n / 2) || (zeros[1] == 0 && zeros[0] == n / 2));
}

static bool is_page(const char *s, size_t n)
{
	static const char *const begin[] = { "<!doctype html", "<html", "<head" };
	for (; n && strchr(" \t\r\n\xef\xbb\xbf", *s) && *s; s++, n--)
		;
	for (int i = 0; i < 3; i++)
		if (n >= strlen(begin[i]) && yk_same_words(s, begin[i], strlen(begin[i])))
			return true;
	return false;
}

const char *yk_file_kind(const void *begin, size_t n)
{
	if (!n)
		return "empty";
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (n >= kinds[i].bytes && !memcmp(begin, kinds[i].begin, kinds[i].bytes))
			return kinds[i].what;
	return is_pickle(begin, n) ? pickle :
	       is_page(begin, n)   ? page :
	       is_wide(begin, n)   ? wide :
				     NULL;
}

bool yk_is_pointer(const void *begin, size_t n)
{
	const char *kind = n ? yk_file_kind(begin, n) : NULL;
	return kind == pointer || kind == annex;
}

int yk_file_refused(const char *path, const void *begin, size_t n, const char *what,
		    const char *why)
{
	const char *kind = yk_file_kind(begin, n);
	return yk_fail(YOKE_EFORMAT, "%s: is not %s: %s%s", path, what, kind ? "it is " : "",
		       kind ? kind : why);
}

int yk_file_refused_at(const char *path, int fd, const char *what, const char *why)
{
	unsigned char begin[YK_KIND_BEGIN];
	const ssize_t n = pread(fd, begin, sizeof begin, 0);
	if (n < 0)
		return yk_fail(YOKE_EFORMAT, "%s: is not %s: %s", path, what, why);
	return yk_file_refused(path, begin, (size_t)n, what, why);
}

// Are there control bytes that do not occur in text?
static bool has_control(const unsigned char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] < ' ' && (s[i] < '\t' || s[i] > '\r') && s[i] != '\x1b')
			return true;
	return false;
}

int yk_text_mark(const char *path, int fd, bool table, uint64_t *mark)
{
	unsigned char begin[YK_KIND_BEGIN];
	const ssize_t n = pread(fd, begin, sizeof begin, 0);
	const char *kind = n > 0 ? yk_file_kind(begin, (size_t)n) : NULL;
	if (kind && (kind == pointer || kind == annex || kind == wide || (table && kind == page) ||
		     has_control(begin, (size_t)n)))
		return yk_fail(YOKE_EFORMAT, "%s: is not text: it is %s", path, kind);
	*mark = n >= 3 && !memcmp(begin, "\xef\xbb\xbf", 3) ? 3 : 0;
	return 0;
}

int yk_text_begin(const char *path, char *text, size_t *n)
{
	const char *kind = *n ? yk_file_kind(text, *n) : NULL;
	if (kind == wide || kind == wider || kind == pointer || kind == annex)
		return yk_fail(YOKE_EFORMAT, "%s: is %s", path, kind);
	if (*n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		memmove(text, text + 3, *n - 3 + 1);
		*n -= 3;
	}
	return 0;
}
