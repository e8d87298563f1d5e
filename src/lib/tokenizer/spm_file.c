// SPDX-License-Identifier: Apache-2.0
// Reads tokenizer.model, SentencePiece's ModelProto.  The wire format of protocol buffers is a
// sequence of fields, each a key (number << 3 | type) and a value; only the fields that are needed
// are looked at.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/spm.h"

struct field {
	uint32_t number;
	int type; // 0 varint, 1 eight bytes, 2 string or message, 5 four bytes
	uint64_t value;
	const unsigned char *data; // of a string or message, which has `value` bytes
};

struct reader {
	const unsigned char *at, *end;
};

static bool varint(struct reader *r, uint64_t *to)
{
	*to = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			return false;
		const unsigned char b = *r->at++;
		*to |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

// 1: a field, 0: the end, -1: damaged.
static int next(struct reader *r, struct field *f)
{
	uint64_t key;

	if (r->at == r->end)
		return 0;
	if (!varint(r, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
		return -1;
	f->number = (uint32_t)(key >> 3);
	f->type = (int)(key & 7);
	switch (f->type) {
	case 0: return varint(r, &f->value) ? 1 : -1;
	case 1:
	case 5: {
		const int n = f->type == 1 ? 8 : 4;
		if (r->end - r->at < n)
			return -1;
		f->value = 0;
		for (int i = 0; i < n; i++)
			f->value |= (uint64_t)r->at[i] << 8 * i;
		r->at += n;
		return 1;
	}
	case 2:
		if (!varint(r, &f->value) || f->value > (uint64_t)(r->end - r->at))
			return -1;
		f->data = r->at;
		r->at += f->value;
		return 1;
	default: return -1;
	}
}

static struct reader inside(const struct field *f)
{
	return (struct reader){ f->data, f->data + f->value };
}

static int damaged(const yoke_tokenizer *t, const struct reader *r, const unsigned char *from)
{
	return yk_fail(YOKE_EFORMAT, "%s: not a SentencePiece model, or damaged at byte %zu",
		       t->name, (size_t)(r->at - from));
}

static int read_piece(struct reader r, struct yk_spm_piece *to)
{
	struct field f;
	int more;

	*to = (struct yk_spm_piece){ .type = YK_PIECE_NORMAL };
	while ((more = next(&r, &f)) > 0) {
		if (f.number == 1 && f.type == 2) {
			to->s = (const char *)f.data;
			to->n = f.value;
		} else if (f.number == 2 && f.type == 5) {
			const uint32_t bits = (uint32_t)f.value;
			memcpy(&to->score, &bits, sizeof bits);
		} else if (f.number == 3 && f.type == 0) {
			to->type = f.value <= YK_PIECE_BYTE ? (int)f.value : 0;
		}
	}
	return more < 0 || !to->s ? -1 : 0;
}

struct file {
	struct yk_spm_piece *piece;
	size_t count, cap;
	uint64_t model; // 1 unigram, 2 BPE, 3 word, 4 char
	int32_t bos, eos, pad;
};

static int trainer(yoke_tokenizer *t, struct reader r, struct file *to)
{
	struct field f;
	int more;

	while ((more = next(&r, &f)) > 0) {
		if (f.type != 0)
			continue;
		switch (f.number) {
		case 3: to->model = f.value; break;
		case 24: t->spm.suffix = f.value; break;
		case 35: t->model.fallback = f.value; break;
		case 41: to->bos = (int32_t)f.value; break;
		case 42: to->eos = (int32_t)f.value; break;
		case 43: to->pad = (int32_t)f.value; break;
		}
	}
	return more;
}

static int normalizer(yoke_tokenizer *t, struct reader r)
{
	struct field f;
	int more;

	while ((more = next(&r, &f)) > 0) {
		if (f.number == 2 && f.type == 2 && f.value && !t->spm.map) {
			t->spm.map = yk_charsmap_new(f.data, f.value, t->name);
			if (!t->spm.map)
				return -1;
		} else if (f.number == 3 && f.type == 0) {
			t->spm.dummy = f.value;
		} else if (f.number == 4 && f.type == 0) {
			t->spm.squeeze = f.value;
		} else if (f.number == 5 && f.type == 0) {
			t->spm.escape = f.value;
		}
	}
	return more;
}

static int build(yoke_tokenizer *t, const struct file *x)
{
	if (x->model != 1 && x->model != 2)
		return yk_fail(
			YOKE_EFORMAT,
			"%s: SentencePiece model type %llu is neither unigram (1) nor bpe (2)",
			t->name, (unsigned long long)x->model);
	const int e = yk_spm_build(t, x->model == 1 ? YK_UNIGRAM : YK_BPE, x->piece, x->count);
	if (e < 0)
		return e;
	const int32_t n = (int32_t)x->count;
	t->bos = x->bos < n ? x->bos : -1;
	t->pad = x->pad < n ? x->pad : -1;
	yk_tokenizer_end(t, x->eos);
	return t->bos >= 0 ? yk_tokenizer_affix(t, false, t->bos) : 0;
}

int yk_tokenizer_read_spm(yoke_tokenizer *t, const void *data, size_t bytes)
{
	const unsigned char *from = data;
	struct reader r = { from, from + bytes };
	struct file x = { .model = 1, .bos = 1, .eos = 2, .pad = -1 };
	struct field f;
	int more, e = 0;

	t->source = yk_hash(data, bytes, 0);
	t->spm = (struct yk_spm){ .dummy = true, .squeeze = true, .escape = true };
	while ((more = next(&r, &f)) > 0) {
		int bad = 0;
		if (f.type != 2)
			continue;
		if (f.number == 1) {
			if (yk_grow(&x.piece, &x.cap, x.count + 1, sizeof *x.piece) < 0) {
				e = yk_fail(YOKE_ENOMEM, "%s: no memory for pieces", t->name);
				break;
			}
			bad = read_piece(inside(&f), &x.piece[x.count++]);
		} else if (f.number == 2) {
			bad = trainer(t, inside(&f), &x);
		} else if (f.number == 3) {
			bad = normalizer(t, inside(&f));
		}
		if (bad < 0)
			break;
	}
	if (e == 0 && (more || !x.count)) // a more exact error, if any, is already recorded
		e = damaged(t, &r, from);
	if (e == 0)
		e = build(t, &x);
	free(x.piece);
	return e;
}
