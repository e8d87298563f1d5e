// SPDX-License-Identifier: Apache-2.0
// Grammars and their sequences.  All sequences of a grammar share its table of states and its cache
// of masks, which a lock protects.  The table is emptied but for the states of sequences when it
// grows large.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schema/compile.h"
#include "schema/mask.h"
#include "schema/schema.h"

#define TABLE_BYTES ((size_t)16 << 20) // from which on the table is emptied

struct yk_schema {
	struct yk_program program;
	struct yk_states states;
	struct yk_masks masks;
	uint32_t start; // at the head of `sequences`' states when the table is emptied
	size_t enough;  // bytes
	pthread_mutex_t lock;
	struct yk_schema_state *sequences; // list
	size_t count;
	bool owned; // yk_schema_free is still to come
};

struct yk_schema_state {
	struct yk_schema *of;
	struct yk_schema_state *next, **link;
	uint32_t state;
	bool finished;
	int64_t tokens; // that it has advanced by
};

// ---- grammars ----

static void destroy(struct yk_schema *g)
{
	yk_masks_fini(&g->masks);
	yk_states_fini(&g->states);
	yk_program_fini(&g->program);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

struct yk_schema *yk_schema_compile(const json_t *schema, const struct yk_schema_vocab *v)
{
	struct yk_schema *g = calloc(1, sizeof *g);

	if (!g) {
		yk_fail(YOKE_ENOMEM, "no memory for a schema");
		return NULL;
	}
	pthread_mutex_init(&g->lock, NULL);
	g->owned = true;
	g->enough = TABLE_BYTES;
	int e = yk_schema_program(schema, &g->program);
	if (e == 0) {
		yk_masks_init(&g->masks, v);
		e = yk_states_init(&g->states, &g->program, &g->start);
		if (e < 0)
			yk_fail(e, "schema: %s",
				e == YOKE_ERANGE ? "too many alternatives begin a value" :
						   yk_error_text(e));
	}
	if (e == 0)
		return g;
	destroy(g);
	return NULL;
}

void yk_schema_free(struct yk_schema *g)
{
	if (!g)
		return;
	pthread_mutex_lock(&g->lock);
	g->owned = false;
	const bool last = !g->count;
	pthread_mutex_unlock(&g->lock);
	if (last)
		destroy(g);
}

// The member "schema" of {"name": .., "schema": .., "strict": ..}; NULL: an error.
static const json_t *schema_of(const json_t *of)
{
	const json_t *name = json_object_get(of, "name"), *strict = json_object_get(of, "strict"),
		     *schema = json_object_get(of, "schema");

	if (!json_is_object(of))
		yk_fail(YOKE_EFORMAT, "response_format: 'json_schema' is not an object");
	else if (!json_is_string(name))
		yk_fail(YOKE_EFORMAT, "response_format: 'name' of 'json_schema' is not a string");
	else if (strict && !json_is_boolean(strict) && !json_is_null(strict))
		yk_fail(YOKE_EFORMAT,
			"response_format: 'strict' of 'json_schema' is neither true nor false");
	else if (!json_is_object(schema))
		yk_fail(YOKE_EFORMAT,
			"response_format: 'schema' of 'json_schema' is not an object");
	else
		return schema;
	return NULL;
}

int yk_schema_of_format(const json_t *format, const struct yk_schema_vocab *v,
			struct yk_schema **to)
{
	const char *type = json_string_value(json_object_get(format, "type"));
	struct yk_schema *g = NULL;

	if (!type)
		return yk_fail(YOKE_EFORMAT, "response_format: 'type' is not a string");
	if (!strcmp(type, "json_object")) {
		json_t *object = json_pack("{s:s}", "type", "object");
		g = object ? yk_schema_compile(object, v) : NULL;
		if (!object)
			yk_fail(YOKE_ENOMEM, "no memory for a schema");
		json_decref(object);
	} else if (!strcmp(type, "json_schema")) {
		const json_t *schema = schema_of(json_object_get(format, "json_schema"));
		g = schema ? yk_schema_compile(schema, v) : NULL;
	} else if (strcmp(type, "text")) {
		return yk_fail(YOKE_EFORMAT,
			       "response_format: the type '%.40s' is not one of text, json_object, "
			       "json_schema",
			       type);
	}
	if (!g && strcmp(type, "text"))
		return yk_error_last();
	*to = g;
	return 0;
}

// Empties the table if it is large, but for the states of the sequences and the start.
static int trim(struct yk_schema *g)
{
	struct yk_states fresh;
	size_t n = 0;

	g->states.work = 0;
	if (yk_states_bytes(&g->states) <= g->enough)
		return 0;
	uint32_t *state = malloc((g->count + 1) * sizeof *state);
	if (!state)
		return YOKE_ENOMEM;
	state[n++] = g->start;
	for (const struct yk_schema_state *s = g->sequences; s; s = s->next)
		state[n++] = s->state;
	const int e = yk_states_move(&g->states, state, n, &fresh);
	if (e == 0) {
		yk_states_fini(&g->states);
		g->states = fresh;
		g->start = state[n = 0];
		for (struct yk_schema_state *s = g->sequences; s; s = s->next)
			s->state = state[++n];
		yk_masks_clear(&g->masks);
		g->enough = 2 * yk_states_bytes(&g->states);
		if (g->enough < TABLE_BYTES)
			g->enough = TABLE_BYTES;
	}
	free(state);
	return e;
}

// ---- sequences ----

// A sequence in a state of the grammar.
static struct yk_schema_state *sequence(struct yk_schema *g, const struct yk_schema_state *like)
{
	struct yk_schema_state *s = calloc(1, sizeof *s);

	if (!s) {
		yk_fail(YOKE_ENOMEM, "no memory for the state of a schema");
		return NULL;
	}
	pthread_mutex_lock(&g->lock);
	s->of = g;
	s->state = like ? like->state : g->start;
	s->finished = like && like->finished;
	s->tokens = like ? like->tokens : 0;
	s->next = g->sequences;
	s->link = &g->sequences;
	if (s->next)
		s->next->link = &s->next;
	g->sequences = s;
	g->count++;
	pthread_mutex_unlock(&g->lock);
	return s;
}

struct yk_schema_state *yk_schema_begin(struct yk_schema *g)
{
	return sequence(g, NULL);
}

struct yk_schema_state *yk_schema_copy(const struct yk_schema_state *s)
{
	return sequence(s->of, s);
}

void yk_schema_end(struct yk_schema_state *s)
{
	if (!s)
		return;
	struct yk_schema *g = s->of;
	pthread_mutex_lock(&g->lock);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	const bool last = !--g->count && !g->owned;
	pthread_mutex_unlock(&g->lock);
	free(s);
	if (last)
		destroy(g);
}

static int report(int e)
{
	if (e == YOKE_ERANGE)
		return yk_fail(e, "schema: the alternatives for what may follow exceed a limit");
	return e < 0 ? yk_fail(e, "schema: %s", yk_error_text(e)) : 0;
}

int yk_schema_allowed(struct yk_schema_state *s, uint32_t *bitmap)
{
	struct yk_schema *g = s->of;

	pthread_mutex_lock(&g->lock);
	int e = trim(g);
	if (e == 0)
		e = yk_masks_fill(&g->masks, &g->states, s->state, s->finished, bitmap);
	pthread_mutex_unlock(&g->lock);
	return report(e);
}

// Steps through bytes; *to is unchanged if they are not allowed.
static int advance(struct yk_schema *g, uint32_t *to, const char *s, size_t n)
{
	uint32_t state = *to;
	int e = 0;

	for (size_t i = 0; i < n && e == 0 && state != YK_STATE_DEAD; i++)
		e = yk_states_step(&g->states, state, (uint8_t)s[i], &state);
	if (e < 0)
		return e;
	if (state == YK_STATE_DEAD)
		return YOKE_EINVAL;
	*to = state;
	return 0;
}

int yk_schema_advance_bytes(struct yk_schema_state *s, const char *text, size_t n)
{
	struct yk_schema *g = s->of;

	pthread_mutex_lock(&g->lock);
	int e = trim(g);
	if (e == 0)
		e = s->finished && n ? YOKE_EINVAL : advance(g, &s->state, text, n);
	pthread_mutex_unlock(&g->lock);
	return e == YOKE_EINVAL ? yk_fail(e, "schema: the text may not go on so") : report(e);
}

int yk_schema_advance(struct yk_schema_state *s, int32_t token)
{
	struct yk_schema *g = s->of;

	pthread_mutex_lock(&g->lock);
	int e = trim(g);
	if (e == 0) {
		size_t n;
		const char *text = yk_masks_text(&g->masks, token, &n);
		if (yk_masks_ends(&g->masks, token) && g->states.state[s->state].complete)
			s->finished = true;
		else
			e = text && !s->finished ? advance(g, &s->state, text, n) : YOKE_EINVAL;
	}
	s->tokens += e == 0;
	pthread_mutex_unlock(&g->lock);
	return e == YOKE_EINVAL ? yk_fail(e, "schema: token %d is not allowed here", (int)token) :
				  report(e);
}

// Is a token of text among those of a bitmap?
static bool goes_on(const struct yk_schema_vocab *v, const uint32_t *bitmap)
{
	for (size_t i = 0; i < v->words; i++)
		if (bitmap[i] & ~v->end_bits[i])
			return true;
	return false;
}

int yk_schema_mask(struct yk_schema_state *s, int64_t n, const int32_t *tokens, uint32_t *bitmap)
{
	const struct yk_schema_vocab *v = s->of->masks.vocab;
	int e = 0;

	if (n < s->tokens) {
		pthread_mutex_lock(&s->of->lock);
		s->state = s->of->start;
		pthread_mutex_unlock(&s->of->lock);
		s->finished = false;
		s->tokens = 0;
	}
	while (e == 0 && s->tokens < n)
		e = yk_schema_advance(s, tokens[s->tokens]);
	if (e == 0)
		e = yk_schema_allowed(s, bitmap);
	if (e < 0)
		return e;
	return s->finished || (yk_schema_complete(s) && !goes_on(v, bitmap));
}

bool yk_schema_complete(const struct yk_schema_state *s)
{
	struct yk_schema *g = s->of;

	pthread_mutex_lock(&g->lock);
	const bool complete = g->states.state[s->state].complete;
	pthread_mutex_unlock(&g->lock);
	return complete;
}

bool yk_schema_finished(const struct yk_schema_state *s)
{
	return s->finished;
}
