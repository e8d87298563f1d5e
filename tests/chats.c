// SPDX-License-Identifier: Apache-2.0
// Conversations as training data: which tokens are learned, what windows hold, which lines are
// refused.
#include "config.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/chat.h"
#include "data/chats.h"
#include "data/pack.h"
#include "data/text.h"
#include "tap.h"
#include "tokenizer/tokenizer.h"

static const char folder[] = "chats";

static void put(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	yk_file_write(path, text, strlen(text));
}

#define TURNS "{% for m in messages %}[{{ m.role }}]\n{{ m.content }}<|eot|>\n{% endfor %}"
#define PROMPT "{% if add_generation_prompt %}[assistant]\n{% endif %}"
// what the same template is with generation blocks
#define BLOCKS \
	"{% for m in messages %}[{{ m.role }}]\n{% if m.role == 'assistant' %}{% generation %}{{ " \
	"m.content }}" \
	"<|eot|>{% endgeneration %}{% else %}{{ m.content }}<|eot|>{% endif %}\n{% endfor " \
	"%}" PROMPT

// A tokenizer of tests/models with a template; <|eot|> is a special token of llama3.json only.
static struct yk_tokenizer *open_tokenizer(const char *name, const char *template)
{
	const char *source = getenv("srcdir");
	char path[256], *text;
	size_t bytes;
	snprintf(path, sizeof path, "%s/tests/models/%s.json", source ? source : ".", name);
	if (yk_file_read(path, 1 << 20, &text, &bytes) < 0)
		return NULL;
	snprintf(path, sizeof path, "%s/tokenizer.json", folder);
	yk_file_write(path, text, bytes);
	free(text);
	put("tokenizer_config.json",
	    strcmp(name, "llama3") ? "{}" : "{\"eos_token\": \"<|eot|>\"}");
	put("chat_template.jinja", template);
	yoke_tokenizer *t = yoke_tokenizer_open(folder);
	return t ? yk_tokenizer_published(t, yoke_tokenizer_size(t)) : NULL;
}

// ---- targets ----

// The samples of a conversation.
struct samples {
	struct yk_chat_tokens at[8];
	int n;
};

static int take_sample(void *arg, const struct yk_chat_tokens *x)
{
	struct samples *s = arg;
	struct yk_chat_tokens *to = &s->at[s->n++];
	*to = *x;
	to->id = malloc(x->n * sizeof *x->id);
	to->target = malloc(x->n);
	memcpy(to->id, x->id, x->n * sizeof *x->id);
	memcpy(to->target, x->target, x->n);
	return 0;
}

static void samples_free(struct samples *s)
{
	for (int i = 0; i < s->n; i++)
		yk_chat_tokens_fini(&s->at[i]);
	s->n = 0;
}

static int encode_all(struct yk_tokenizer *t, const char *messages, size_t from, struct samples *to)
{
	struct yk_conversation c = { .tokenizer = t,
				     .template = yoke_chat_template_of(yk_tokenizer_pretrained(t)),
				     .messages = json_loads(messages, 0, NULL),
				     .from = from,
				     .limit = 1000 };
	const int e = c.template ? yk_chat_encode(&c, take_sample, to) : yoke_error_code();
	json_decref(c.messages);
	yoke_chat_template_free(c.template);
	return e;
}

// Of one sample.
static int encode(struct yk_tokenizer *t, const char *messages, size_t from,
		  struct yk_chat_tokens *x)
{
	struct samples s = { .n = 0 };
	const int e = encode_all(t, messages, from, &s);
	if (e == 0 && s.n == 1) {
		*x = s.at[0];
		return 0;
	}
	samples_free(&s);
	return e < 0 ? e : YOKE_ERANGE;
}

// Decodes each run of targets, in brackets.
static void learned(const struct yk_tokenizer *t, const struct yk_chat_tokens *x, char *to,
		    size_t room)
{
	size_t n = 0;
	for (size_t i = 0; i < x->n && n + 64 < room; i++) {
		char *text;
		size_t end = i, bytes;
		if (!x->target[i])
			continue;
		while (end < x->n && x->target[end])
			end++;
		yoke_tokenizer_decode(yk_tokenizer_pretrained(t), x->id + i, end - i, 0, &text,
				      &bytes);
		n += (size_t)snprintf(to + n, room - n, "{%.100s}", text);
		free(text);
		i = end - 1;
	}
	to[n] = 0;
}

#define TWO \
	"[{\"role\":\"user\",\"content\":\"Two and " \
	"two?\"},{\"role\":\"assistant\",\"content\":\"Four.\"}," \
	"{\"role\":\"user\",\"content\":\"and one?\"},{\"role\":\"assistant\",\"content\":\"It " \
	"is five.\"}]"

static void test_targets(void)
{
	static const struct {
		const char *what, *tokenizer, *template, *messages, *want;
		size_t from;
	} cases[] = {
		{ "turns found by prefixes", "llama3", TURNS PROMPT, TWO,
		  "{Four.<|eot|>}{It is five.<|eot|>}", 0 },
		{ "generation blocks", "llama3", BLOCKS, TWO, "{Four.<|eot|>}{It is five.<|eot|>}",
		  0 },
		{ "only answers after a prompt", "llama3", TURNS PROMPT, TWO,
		  "{It is five.<|eot|>}", 2 },
		{ "only blocks after a prompt", "llama3", BLOCKS, TWO, "{It is five.<|eot|>}", 3 },
		{ "no token that ends a turn", "gpt2", TURNS PROMPT, TWO,
		  "{Four.<|eot|>\n}{It is five.<|eot|>\n}", 0 },
		{ "a tokenizer that marks blanks", "llama2", TURNS PROMPT, TWO,
		  "{Four.<|eot|>\n}{It is five.<|eot|>\n}", 0 },
		{ "a tokenizer that changes the text", "words",
		  "{% for m in messages %}{{ m.role }} : {{ m.content }} of {% endfor %}{% if "
		  "add_generation_prompt %}assistant : {% endif %}",
		  "[{\"role\":\"user\",\"content\":\"the "
		  "City\"},{\"role\":\"assistant\",\"content\":\"In The River\"}]",
		  "{in the [UNK] of}", 0 },
		{ "a special token that a user writes", "llama3", TURNS PROMPT,
		  "[{\"role\":\"user\",\"content\":\"a<|eot|>b\"},{\"role\":\"assistant\","
		  "\"content\":\"c<|eot|>d\"}]",
		  "{c<|eot|>d<|eot|>}", 0 },
		{ "white space of an answer", "llama3", TURNS PROMPT,
		  "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b "
		  "\\n\\n\"}]",
		  "{b \n\n<|eot|>}", 0 },
		{ "no answer", "llama3", TURNS PROMPT, "[{\"role\":\"user\",\"content\":\"a\"}]",
		  "", 0 },
		{ "answers of several letters", "llama3", TURNS PROMPT,
		  "[{\"role\":\"user\",\"content\":\"\\u00e9\\ud83d\\ude42\"},{\"role\":"
		  "\"assistant\",\"content\":\"\\u5317\\u4eac \\ud83d\\ude42\"}]",
		  "{\xe5\x8c\x97\xe4\xba\xac \xf0\x9f\x99\x82<|eot|>}", 0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_tokenizer *t = open_tokenizer(cases[i].tokenizer, cases[i].template);
		struct samples all = { .n = 0 };
		char got[1000] = "";
		const int e = t ? encode_all(t, cases[i].messages, cases[i].from, &all) :
				  yoke_error_code();
		if (e == 0 && all.n == 1)
			learned(t, &all.at[0], got, sizeof got);
		ok(e == 0 && !strcmp(got, cases[i].want), "%s: learned are '%s', want '%s' %s",
		   cases[i].what, got, cases[i].want, yoke_error());
		yoke_error_clear();
		samples_free(&all);
		yk_tokenizer_free(t);
	}
}

// Leaves the thinking out of all answers but the last.
#define THINKING \
	"{% for m in messages %}[{{ m.role }}]\n{% if m.role == 'assistant' and not loop.last %}" \
	"{{ m.content.split('</t>')[-1] }}{% else %}{{ m.content }}{% endif %}<|eot|>\n{% endfor %}" PROMPT

// Templates that render earlier turns in another way than the last one: each sample is the prompt
// for an answer and the answer, "prompt|answer".  <|eot|> is one token.
static void test_turns(void)
{
	static const struct {
		const char *what, *template, *messages, *want[3];
		size_t from;
	} cases[] = {
		{ "thinking that is left out of earlier answers",
		  THINKING,
		  "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
		  "\"<t>a</t>Four\"},{\"role\":\"user\",\"content\":\"r\"},{\"role\":"
		  "\"assistant\",\"content\":\"<t>b</t>Five\"}]",
		  { "[user]\nq<|eot|>\n[assistant]\n|<t>a</t>Four<|eot|>|\n",
		    "[user]\nq<|eot|>\n[assistant]\nFour<|eot|>\n[user]\nr<|eot|>\n[assistant]\n|"
		    "<t>b</t>Five<|eot|>|\n" },
		  0 },
		{ "the same after a prompt of three messages",
		  THINKING,
		  "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
		  "\"<t>a</t>Four\"},{\"role\":\"user\",\"content\":\"r\"},{\"role\":"
		  "\"assistant\",\"content\":\"<t>b</t>Five\"}]",
		  { "[user]\nq<|eot|>\n[assistant]\nFour<|eot|>\n[user]\nr<|eot|>\n[assistant]\n|"
		    "<t>b</t>Five<|eot|>|\n" },
		  3 },
		{ "a system message in the last message of the user, if that is the last",
		  "{% for m in messages %}{% if m.role == 'user' %}[INST]{% if loop.last %}{{ "
		  "messages[0].content }}/{% endif %}{{ m.content }}[/INST]{% elif m.role == "
		  "'assistant' %}{{ m.content }}<|eot|>{% endif %}{% endfor %}",
		  "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":"
		  "\"q\"},{\"role\":\"assistant\",\"content\":\"Four\"},{\"role\":\"user\","
		  "\"content\":\"r\"},{\"role\":\"assistant\",\"content\":\"Five\"}]",
		  { "[INST]s/q[/INST]|Four<|eot|>|",
		    "[INST]q[/INST]Four<|eot|>[INST]s/r[/INST]|Five<|eot|>|" },
		  0 },
		{ "a prompt that begins thinking which the answer does not have",
		  "{% for m in messages %}<{{ m.role }}>{{ m.content }}<|eot|>{% endfor %}{% if "
		  "add_generation_prompt %}<assistant><t>{% endif %}",
		  TWO,
		  { "<user>Two and two?<|eot|><assistant>|Four.<|eot|>|<user>and "
		    "one?<|eot|><assistant>|It is five.<|eot|>|" },
		  0 },
		{ "an answer that begins as such a prompt",
		  "{% for m in messages %}<{{ m.role }}>{{ m.content }}<|eot|>{% endfor %}{% if "
		  "add_generation_prompt %}<assistant><t>{% endif %}",
		  "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":"
		  "\"<b\"}]",
		  { "<user>q<|eot|><assistant>|<b<|eot|>|" },
		  0 },
		{ "a template that counts messages",
		  "{{ messages|length }}" TURNS PROMPT,
		  TWO,
		  { "1[user]\nTwo and two?<|eot|>\n[assistant]\n|Four.<|eot|>|\n",
		    "3[user]\nTwo and two?<|eot|>\n[assistant]\nFour.<|eot|>\n[user]\nand "
		    "one?<|eot|>\n[assistant]\n|It is five.<|eot|>|\n" },
		  0 },
		{ "an end after the last answer only",
		  "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if loop.last and m.role "
		  "== 'assistant' %}<|eot|>{% endif %}{% endfor %}{% if add_generation_prompt "
		  "%}[assistant]{% endif %}",
		  TWO,
		  { "[user]Two and two?[assistant]|Four.<|eot|>|",
		    "[user]Two and two?[assistant]Four.[user]and one?[assistant]|It is "
		    "five.<|eot|>|" },
		  0 },
		{ "generation blocks with the header of the turn, after a prompt",
		  "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}[a]{{ "
		  "m.content }}<|eot|>{% endgeneration %}{% else %}[u]{{ m.content }}<|eot|>{% "
		  "endif %}{% endfor %}{% if add_generation_prompt %}[a]{% endif %}",
		  TWO,
		  { "[u]Two and two?<|eot|>[a]Four.<|eot|>[u]and one?<|eot|>|[a]It is "
		    "five.<|eot|>|" },
		  3 },
		{ "generation blocks of answers whose thinking is left out",
		  "{% for m in messages %}{% if m.role == 'assistant' %}[a]{% generation %}{{ "
		  "m.content if loop.last else m.content[1:] }}<|eot|>{% endgeneration %}{% else "
		  "%}[u]{{ m.content }}<|eot|>{% endif %}{% endfor %}{% if add_generation_prompt "
		  "%}[a]{% endif %}",
		  TWO,
		  { "[u]Two and two?<|eot|>[a]|our.<|eot|>|[u]and one?<|eot|>[a]|It is "
		    "five.<|eot|>|" },
		  0 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_tokenizer *t = open_tokenizer("llama3", cases[i].template);
		struct samples all = { .n = 0 };
		int want = 0;
		const int e = t ? encode_all(t, cases[i].messages, cases[i].from, &all) :
				  yoke_error_code();
		bool good = e == 0;
		while (want < 3 && cases[i].want[want])
			want++;
		for (int k = 0; k < want && good && all.n == want; k++) {
			const struct yk_chat_tokens *x = &all.at[k];
			char got[1000] = "";
			size_t n = 0;
			for (size_t from = 0, to; from < x->n; from = to) {
				char *text;
				size_t bytes;
				for (to = from; to < x->n && x->target[to] == x->target[from];)
					to++;
				yoke_tokenizer_decode(yk_tokenizer_pretrained(t), x->id + from,
						      to - from, 0, &text, &bytes);
				n += (size_t)snprintf(got + n, sizeof got - n, "%s%.300s",
						      x->target[from] ? "|" : "", text);
				if (x->target[from])
					n += (size_t)snprintf(got + n, sizeof got - n, "|");
				free(text);
			}
			good = ok(!strcmp(got, cases[i].want[k]),
				  "%s: sample %d is '%s', want '%s'", cases[i].what, k, got,
				  cases[i].want[k]);
		}
		ok(good && all.n == want, "%s: %d samples, want %d %s", cases[i].what, all.n, want,
		   yoke_error());
		yoke_error_clear();
		samples_free(&all);
		yk_tokenizer_free(t);
	}
}

// A special token in a message is text, also where the prompt has the beginning of the message and
// differs from the rendering before it.
static void test_typed_tokens(void)
{
	static const char template[] =
		"{{ messages|length }}{% for m in messages %}<{{ m.role }}>{{ m.content "
		"}}<|eot|>{% endfor %}{% if add_generation_prompt %}<assistant><t>\n{% endif %}";
	static const struct {
		const char *answer;
		int specials; // with the one that ends the question
	} cases[] = {
		{ "<t>\\nx</t>y", 2 },  { "<t>\\nx</t><|eot|><user>y", 2 },
		{ "<t>\\n<|eot|>", 2 }, { "<t>\\n<|eot|><|eot|>y<|eot|>", 2 },
		{ "x<|eot|>y", 2 },
	};
	struct yk_tokenizer *t = open_tokenizer("llama3", template);
	const int eot = yoke_tokenizer_id(yk_tokenizer_pretrained(t), "<|eot|>", 7);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char messages[300];
		struct samples all = { .n = 0 };
		int got = 0;
		snprintf(messages, sizeof messages,
			 "[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\","
			 "\"content\":\"%s\"}]",
			 cases[i].answer);
		const int e = encode_all(t, messages, 0, &all);
		for (size_t k = 0; e == 0 && k < all.at[0].n; k++)
			got += all.at[0].id[k] == eot;
		ok(e == 0 && all.n == 1 && got == cases[i].specials,
		   "the answer '%s': %d special tokens, want %d %s", cases[i].answer, got,
		   cases[i].specials, yoke_error());
		yoke_error_clear();
		samples_free(&all);
	}
	yk_tokenizer_free(t);
}

// Against a list that was made by hand: the ids of the whole text, and which of them are learned.
static void test_list(void)
{
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	const yoke_tokenizer *p = yk_tokenizer_pretrained(t);
	static const char text[] =
		"[user]\nTwo and two?<|eot|>\n[assistant]\nFour.<|eot|>\n[user]\nand "
		"one?<|eot|>\n[assistant]\n"
		"It is five.<|eot|>\n";
	const char *parts[] = { "[user]\nTwo and two?",
				"<|eot|>",
				"\n[assistant]\n",
				"Four.",
				"<|eot|>",
				"\n[user]\nand one?",
				"<|eot|>",
				"\n[assistant]\n",
				"It is five.",
				"<|eot|>",
				"\n" };
	const char *learn = "00011000110";
	struct yk_chat_tokens x = { 0 };
	int32_t *all, *id;
	size_t n, m, k = 0;
	const int e = encode(t, TWO, 0, &x);
	yoke_tokenizer_encode(p, text, sizeof text - 1, YOKE_TOKENIZER_PARSE, &all, &n);
	ok(e == 0 && n == x.n && !memcmp(all, x.id, n * sizeof *all),
	   "a conversation has the ids of its text: %d, want %d of them", (int)x.n, (int)n);
	bool same = e == 0;
	for (size_t i = 0; i < sizeof parts / sizeof *parts && same; i++) {
		yoke_tokenizer_encode(p, parts[i], strlen(parts[i]), YOKE_TOKENIZER_PARSE, &id, &m);
		for (size_t j = 0; j < m && same; j++, k++)
			same = k < x.n && x.id[k] == id[j] && x.target[k] == learn[i] - '0';
		free(id);
	}
	ok(same && k == x.n,
	   "the learned ones are those marked by hand; the first that differs is %d of %d", (int)k,
	   (int)x.n);
	free(all);
	yk_chat_tokens_fini(&x);
	yk_tokenizer_free(t);
}

static void test_templates_refused(void)
{
	static const struct {
		const char *what, *template;
		int code;
	} cases[] = {
		{ "one that begins at the end",
		  "{% for m in messages|reverse %}{{ m.content }}{% endfor %}", YOKE_EFORMAT },
		{ "one that raises", "{{ raise_exception('only users') }}", YOKE_EFORMAT },
		{ "one that writes much",
		  "{% for i in range(999) %}{% for j in range(99) %}{{ messages }}{% endfor %}{% "
		  "endfor %}",
		  YOKE_ERANGE },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_tokenizer *t = open_tokenizer("llama3", cases[i].template);
		struct yk_chat_tokens x = { 0 };
		const int e = t ? encode(t, TWO, 0, &x) : 0;
		ok(e == cases[i].code && !x.id && !strchr(yoke_error(), '\n'), "refused: %s: %s",
		   cases[i].what, yoke_error());
		yoke_error_clear();
		yk_tokenizer_free(t);
	}
}

// ---- packing ----

// The number of windows of best fit decreasing, with loops over all windows.
static int64_t slow_pack(const int64_t *length, int64_t n, int64_t room)
{
	int64_t *left = calloc((size_t)n, sizeof *left), windows = 0;
	for (int64_t size = room; size > 0; size--)
		for (int64_t i = 0; i < n; i++) {
			int64_t best = -1;
			if (length[i] != size)
				continue;
			for (int64_t w = 0; w < windows; w++)
				if (left[w] >= size && (best < 0 || left[w] < left[best]))
					best = w;
			if (best < 0)
				left[best = windows++] = room;
			left[best] -= size;
		}
	free(left);
	return windows;
}

static void check_packing(int64_t n, int64_t room, bool pack)
{
	int64_t *length = calloc((size_t)n + 5, sizeof *length), first = -1;
	bool *seen = calloc((size_t)n + 5, 1), good = true;
	struct yk_packing p;
	for (int64_t i = 5; i < n + 5; i++)
		length[i] = 1 + (int64_t)(rnd() % (uint64_t)(i % 3 ? room : (room + 3) / 4));
	const int e = yk_packing_make(&p, length, 5, n + 5, room, pack);
	int64_t total = 0;
	for (int64_t w = 0; e == 0 && w < p.windows; w++) {
		int64_t sum = 0, before = -1;
		good = good && p.text[p.first[w]] > first;
		first = p.text[p.first[w]];
		for (int64_t i = p.first[w]; i < p.first[w + 1]; i++) {
			const int64_t x = p.text[i];
			good = good && x > before && x >= 5 && x < n + 5 && !seen[x];
			seen[x] = true;
			sum += length[x];
			before = x;
			total++;
		}
		good = good && sum <= room;
	}
	const int64_t want = pack ? slow_pack(length + 5, n, room) : n;
	ok(e == 0 && good && total == n && p.windows == want,
	   "%d texts in windows of %d, pack=%d: each in one, in %d windows, want %d", (int)n,
	   (int)room, pack, (int)p.windows, (int)want);
	yk_packing_fini(&p);
	free(length);
	free(seen);
}

// ---- data ----

static struct yk_data *open_data(struct yk_tokenizer *t, const char *name, struct yk_data_spec spec)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	spec.valid_given = spec.chats = true;
	return yk_data_new(path, t, &spec);
}

// Windows of a file: each position continues its text, and the texts are those of the lines.
static void test_windows(void)
{
	enum { T = 80, LINES = 9 };
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	char text[8000], line[600], messages[LINES][200];
	size_t n = 0;
	for (int i = 0; i < LINES; i++) {
		snprintf(messages[i], sizeof *messages,
			 "[{\"role\":\"user\",\"content\":\"%.*s\"},{\"role\":\"assistant\","
			 "\"content\":\"answer %d\"}]",
			 1 + i % 3, "abc", i);
		snprintf(line, sizeof line, "{\"messages\":%.199s}\n%s", messages[i],
			 i % 4 ? "" : "\r\n");
		n += (size_t)snprintf(text + n, sizeof text - n, "%s", line);
	}
	put("windows.jsonl", text);
	struct yk_data *d[2];
	for (int k = 0; k < 2; k++)
		d[k] = open_data(t, "windows.jsonl",
				 (struct yk_data_spec){ .context = T, .valid = 1, .pack = k });
	if (!ok(d[0] && d[1], "a file of conversations opens %s", yoke_error()))
		return;
	ok(yk_data_chats(d[1]) == LINES && yk_data_width(d[1]) == 3 * T,
	   "it has %d texts, and rows of %d numbers", (int)yk_data_chats(d[1]),
	   (int)yk_data_width(d[1]));
	ok(yk_data_valid_windows(d[0]) == LINES && yk_data_valid_windows(d[1]) < LINES,
	   "pack=0 has a window for each, %d; pack=1 %d", (int)yk_data_valid_windows(d[0]),
	   (int)yk_data_valid_windows(d[1]));
	ok(yk_data_fingerprint(d[0]) != yk_data_fingerprint(d[1]), "their fingerprints differ");
	for (int k = 0; k < 2; k++) {
		int32_t row[3 * T];
		bool seen[LINES] = { false }, good = true;
		int64_t targets = 0, numbered = 0;
		for (int64_t w = 0; w < yk_data_valid_windows(d[k]); w++) {
			memset(row, -2, sizeof row);
			good = good && yk_data_valid(d[k], w, 1, row) == 1;
			targets += yk_data_targets(d[k], row, 1);
			numbered += yk_data_valid_targets(d[k], w);
			for (int at = 0; at < T && good;) {
				struct yk_chat_tokens x = { 0 };
				int i = 0, length = 1;
				while (at + length < T && row[2 * T + at + length])
					length++;
				for (; length > 1 && i < LINES; i++) { // which line is it?
					encode(t, messages[i], 0, &x);
					if ((int)x.n - 1 == length &&
					    !memcmp(x.id, row + at, (size_t)length * sizeof *row))
						break;
					yk_chat_tokens_fini(&x);
				}
				good = good && row[2 * T + at] == 0 &&
				       (length == 1 || (i < LINES && !seen[i]));
				for (int j = 0; j < length && good; j++)
					good = row[2 * T + at + j] == j &&
					       row[T + at + j] == (length > 1 && x.target[j + 1] ?
									   x.id[j + 1] :
									   YK_NO_TARGET);
				if (length > 1 && i < LINES)
					seen[i] = true;
				yk_chat_tokens_fini(&x);
				at += length;
			}
		}
		for (int i = 0; i < LINES; i++)
			good = good && seen[i];
		ok(good && targets > 0 && targets == numbered,
		   "pack=%d: windows hold each line once, with its targets, %d, and positions", k,
		   (int)targets);
		yk_data_free(d[k]);
	}
	yk_tokenizer_free(t);
}

// Counts of targets of files with one line.
static void test_lines(void)
{
	static const struct {
		const char *what, *line;
		int64_t context, windows, targets;
	} cases[] = {
		{ "a text: all tokens but the first, and its end", "{\"text\":\"abcd\"}", 64, 1,
		  -1 },
		{ "a text longer than a window goes on in the next",
		  "{\"text\":\"abcdefghijklmnopqrstuvwxyz0123456789\"}", 8, -1, -1 },
		{ "two strings: the second, and its end",
		  "{\"prompt\":\"abc\",\"completion\":\"<\"}", 64, 1, 2 },
		{ "two lists: the answers of the second",
		  "{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
		  "\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}],"
		  "\"completion\":[{\"role\":\"assistant\",\"content\":\"<\"}]}",
		  64, 1, 2 },
		{ "messages beside members that are null",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\","
		  "\"content\":\"<\"}],\"text\":null,\"prompt\":null,\"completion\":null,"
		  "\"tools\":null}",
		  64, 1, 2 },
		{ "a text beside members that are null",
		  "{\"messages\":null,\"prompt\":null,\"completion\":null,\"text\":\"abcd\"}", 64,
		  1, -1 },
		{ "two strings beside members that are null",
		  "{\"messages\":null,\"text\":null,\"prompt\":\"abc\",\"completion\":\"<\"}", 64,
		  1, 2 },
		{ "a content of texts",
		  "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		  "\"a\"}]},"
		  "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"<\"},{"
		  "\"type\":\"text\",\"text\":\"<\"}]}]}",
		  64, 1, 3 },
	};
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		put("line.jsonl", cases[i].line);
		struct yk_data *d =
			open_data(t, "line.jsonl",
				  (struct yk_data_spec){
					  .context = cases[i].context, .valid = 1, .pack = true });
		int64_t targets = 0;
		for (int64_t w = 0; d && w < yk_data_valid_windows(d); w++)
			targets += yk_data_valid_targets(d, w);
		int32_t *id = NULL;
		size_t n = 0;
		json_t *j = json_loads(cases[i].line, 0, NULL);
		const char *text = json_string_value(json_object_get(j, "text"));
		if (text) // its tokens with the first one of the post-processor, and the end
			yoke_tokenizer_encode(yk_tokenizer_pretrained(t), text, strlen(text),
					      YOKE_TOKENIZER_ADD, &id, &n);
		const int64_t want = text ? (int64_t)n : cases[i].targets, c = cases[i].context;
		const int64_t windows =
			cases[i].windows > 0 ? cases[i].windows : ((int64_t)n + c - 1) / c;
		ok(d && targets == want && yk_data_valid_windows(d) == windows,
		   "%s: %d targets in %d windows, want %d in %d %s", cases[i].what, (int)targets,
		   d ? (int)yk_data_valid_windows(d) : 0, (int)want, (int)windows, yoke_error());
		yoke_error_clear();
		free(id);
		json_decref(j);
		yk_data_free(d);
	}
	yk_tokenizer_free(t);
}

#define ASKED "{\"role\":\"user\",\"content\":\"a\"}"
#define GOOD "{\"messages\":[" ASKED ",{\"role\":\"assistant\",\"content\":\"b\"}]}\n"
#define ONE(message) "{\"messages\":[" message "]}"

// The second line of a file is refused, with its number.
static void test_lines_refused(void)
{
	static const struct {
		const char *what, *line;
		int code;
	} cases[] = {
		{ "no messages", "{\"message\":[]}", YOKE_EFORMAT },
		{ "not JSON", "{\"messages\":[", YOKE_EFORMAT },
		{ "text after the object", "{\"text\":\"a\"} b", YOKE_EFORMAT },
		{ "a list", "[1]", YOKE_EFORMAT },
		{ "a string", "\"a\"", YOKE_EFORMAT },
		{ "null", "null", YOKE_EFORMAT },
		{ "a number", "1e999", YOKE_EFORMAT },
		{ "messages that are no list", "{\"messages\":{\"role\":\"user\"}}", YOKE_EFORMAT },
		{ "no message", "{\"messages\":[]}", YOKE_EFORMAT },
		{ "a message that is no object", ONE("3"), YOKE_EFORMAT },
		{ "an unknown role", ONE("{\"role\":\"human\",\"content\":\"a\"}"), YOKE_EFORMAT },
		{ "no role", ONE("{\"content\":\"a\"}"), YOKE_EFORMAT },
		{ "a role that is a number", ONE("{\"role\":1,\"content\":\"a\"}"), YOKE_EFORMAT },
		{ "from and value", ONE("{\"from\":\"human\",\"value\":\"a\"}"), YOKE_EFORMAT },
		{ "conversations", "{\"conversations\":[]}", YOKE_EFORMAT },
		{ "no content", ONE("{\"role\":\"user\"}"), YOKE_EFORMAT },
		{ "a content that is a number", ONE("{\"role\":\"user\",\"content\":1}"),
		  YOKE_EFORMAT },
		{ "a content that is null", ONE("{\"role\":\"assistant\",\"content\":null}"),
		  YOKE_EFORMAT },
		{ "an image", ONE("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}"),
		  YOKE_EUNSUPPORTED },
		{ "a part without a type", ONE("{\"role\":\"user\",\"content\":[\"a\"]}"),
		  YOKE_EFORMAT },
		{ "a part without a text",
		  ONE("{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}"), YOKE_EFORMAT },
		{ "a completion without a prompt", "{\"completion\":\"a\"}", YOKE_EFORMAT },
		{ "a prompt of another kind", "{\"prompt\":\"a\",\"completion\":[" ASKED "]}",
		  YOKE_EFORMAT },
		{ "a text that is a number", "{\"text\":1}", YOKE_EFORMAT },
		{ "tools that are no list", "{\"messages\":[" ASKED "],\"tools\":\"a\"}",
		  YOKE_EFORMAT },
		{ "bytes that are not UTF-8", "{\"text\":\"\xff\"}", YOKE_EFORMAT },
		{ "half of a surrogate pair", "{\"text\":\"\\ud800\"}", YOKE_EFORMAT },
		{ "a NUL", "{\"text\":\"\\u0000\"}", YOKE_EFORMAT },
		{ "messages and a text", "{\"messages\":[" ASKED "],\"text\":\"a\"}",
		  YOKE_EFORMAT },
		{ "messages and a completion",
		  "{\"messages\":[" ASKED "],\"prompt\":\"a\",\"completion\":\"b\"}",
		  YOKE_EFORMAT },
		{ "a completion and a text",
		  "{\"prompt\":\"a\",\"completion\":\"b\",\"text\":\"c\"}", YOKE_EFORMAT },
		{ "messages that are null", "{\"messages\":null}", YOKE_EFORMAT },
		{ "a prompt whose completion is null", "{\"prompt\":\"a\",\"completion\":null}",
		  YOKE_EFORMAT },
		{ "a member twice", "{\"text\":\"a\",\"text\":\"b\"}", YOKE_EFORMAT },
	};
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	const struct yk_data_spec spec = { .context = 64, .valid = 1, .pack = true };
	char text[1000];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, GOOD "%s\n" GOOD, cases[i].line);
		put("bad.jsonl", text);
		struct yk_data *d = open_data(t, "bad.jsonl", spec);
		ok(!d && yoke_error_code() == cases[i].code &&
			   strstr(yoke_error(), "bad.jsonl:2:") && !strchr(yoke_error(), '\n'),
		   "refused: %s: %s", cases[i].what, yoke_error());
		yoke_error_clear();
		yk_data_free(d);
	}
	char *deep = malloc(200100);
	memcpy(deep, GOOD, strlen(GOOD));
	memset(deep + strlen(GOOD), '[', 200000);
	deep[strlen(GOOD) + 200000] = 0;
	put("bad.jsonl", deep);
	free(deep);
	struct yk_data *d = open_data(t, "bad.jsonl", spec);
	ok(!d && yoke_error_code() == YOKE_EFORMAT && strstr(yoke_error(), "bad.jsonl:2:"),
	   "refused: a list in 200000 lists: %s", yoke_error());
	yoke_error_clear();
	put("bad.jsonl", "");
	d = open_data(t, "bad.jsonl", spec);
	ok(!d && yoke_error_code() == YOKE_EFORMAT, "refused: an empty file: %s", yoke_error());
	yoke_error_clear();
	put("bad.jsonl", ONE(ASKED) "\n");
	d = open_data(t, "bad.jsonl", spec);
	ok(!d && yoke_error_code() == YOKE_ERANGE, "refused: a file without an answer: %s",
	   yoke_error());
	yoke_error_clear();
	put("bad.jsonl", GOOD);
	d = open_data(t, "bad.jsonl",
		      (struct yk_data_spec){ .context = 64, .valid = 0.1, .pack = true });
	ok(!d && yoke_error_code() == YOKE_ERANGE,
	   "refused: one conversation, to train and to validate: %s", yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
	t = open_tokenizer("gpt2", "");
	char path[256];
	snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
	unlink(path);
	yk_tokenizer_free(t);
	yoke_tokenizer *bare = yoke_tokenizer_open(folder);
	t = yk_tokenizer_published(bare, yoke_tokenizer_size(bare));
	d = open_data(t, "bad.jsonl", spec);
	ok(!d && yoke_error_code() == YOKE_ENOENT && strstr(yoke_error(), "bad.jsonl:1:"),
	   "refused: messages without a chat template: %s", yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
}

// Conversations longer than a window are cut, and left out if nothing remains to be learned.
static void test_cut(void)
{
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	put("cut.jsonl",
	    GOOD "{\"messages\":[" ASKED
		 ",{\"role\":\"assistant\",\"content\":\"abcdefghijklmnopqrstuvwxyz 0123456789 "
		 "abcdefghijklmnopqrstuvwxyz\"}]}\n"
		 "{\"messages\":[{\"role\":\"user\",\"content\":\"abcdefghijklmnopqrstuvwxyz "
		 "0123456789 abcdefghijklmnopqrstuvwxyz\"},"
		 "{\"role\":\"assistant\",\"content\":\"b\"}]}\n");
	struct yk_data *d = open_data(
		t, "cut.jsonl", (struct yk_data_spec){ .context = 32, .valid = 0.5, .pack = true });
	int32_t row[96];
	const bool good = d && yk_data_valid(d, 0, 1, row) == 1;
	ok(good && yk_data_chats(d) == 2 && yk_data_train_windows(d) == 1 &&
		   yk_data_valid_windows(d) == 1,
	   "of three conversations the one whose answer lies beyond the window is left out: %d are "
	   "used %s",
	   d ? (int)yk_data_chats(d) : 0, yoke_error());
	ok(good && row[31 + 64] == 31 && row[31 + 32] != YK_NO_TARGET,
	   "one that is cut fills its window: the last position is %d, its target %d",
	   good ? row[31 + 64] : 0, good ? row[31 + 32] : 0);
	yk_data_free(d);
	yk_tokenizer_free(t);
}

// A file of prepared conversations gives the windows of its .jsonl file, for each context.
static void test_prepared(void)
{
	static const char rewriting[] = "{% for m in messages %}[{{ m.role }}]\n{% if m.role == "
					"'assistant' and not loop.last "
					"%}{{ m.content[1:] }}{% else %}{{ m.content }}{% endif "
					"%}<|eot|>\n{% endfor %}" PROMPT;
	struct yk_tokenizer *t = open_tokenizer("llama3", rewriting);
	char text[20000], path[300], out[300];
	size_t n = 0;
	for (int i = 0; i < 12; i++)
		n += (size_t)snprintf(
			text + n, sizeof text - n,
			"{\"messages\":[" ASKED
			",{\"role\":\"assistant\",\"content\":\"b%.*s\"}," ASKED
			",{\"role\":\"assistant\",\"content\":\"c%d\"}]}\n"
			"{\"text\":\"%.*s\"}\n{\"prompt\":\"a%.*s\",\"completion\":\"b\"}\n",
			5 * i, "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i,
			5 * i, "zyxwvutsrqponmlkjihgfedcba9876543210ZYXWVUTSRQPONMLKJIHGFEDCBA", i,
			"bcdefghijklmnop");
	put("prepared.jsonl", text);
	snprintf(path, sizeof path, "%s/prepared.jsonl", folder);
	snprintf(out, sizeof out, "%s/prepared.tokens.safetensors", folder);
	struct yk_chats_prepared made = { 0 };
	ok(yk_data_prepare_chats(path, t, out, &made) == 0 && made.lines == 36 &&
		   made.samples == 48,
	   "36 lines are 48 samples: %d are %d %s", (int)made.lines, (int)made.samples,
	   yoke_error());
	for (int64_t context = 8; context <= 128; context *= 2)
		for (int pack = 0; pack < 2; pack++) {
			const struct yk_data_spec spec = { .context = context,
							   .valid = 1,
							   .pack = pack };
			struct yk_data *a = open_data(t, "prepared.jsonl", spec),
				       *b = open_data(t, "prepared.tokens.safetensors", spec);
			bool good = a && b && yk_data_fingerprint(a) == yk_data_fingerprint(b) &&
				    yk_data_valid_windows(a) == yk_data_valid_windows(b);
			int32_t rows[2][3 * 128];
			for (int64_t w = 0; good && w < yk_data_valid_windows(a); w++) {
				yk_data_valid(a, w, 1, rows[0]);
				yk_data_valid(b, w, 1, rows[1]);
				good = !memcmp(rows[0], rows[1],
					       (size_t)(3 * context) * sizeof **rows);
			}
			ok(good, "context=%d pack=%d: the same %d windows %s", (int)context, pack,
			   a ? (int)yk_data_valid_windows(a) : 0, yoke_error());
			yk_data_free(a);
			yk_data_free(b);
		}
	const struct yk_data_spec spec = { .context = 16, .valid = 1, .pack = true };
	struct yk_data_spec text_spec = { .context = 16, .valid = 1 };
	text_spec.valid_given = true;
	struct yk_data *d = yk_data_new(out, t, &text_spec);
	ok(!d && yoke_error_code() == YOKE_EFORMAT && strstr(yoke_error(), "init="),
	   "refused without init=: %s", yoke_error());
	yoke_error_clear();
	// each eighth byte altered, and each eighth length
	char *all, *bad;
	size_t bytes, wrong = 0;
	if (yk_file_read(out, 1 << 20, &all, &bytes) < 0 || !(bad = malloc(bytes)))
		return;
	for (size_t i = 0; i < bytes; i += 8)
		for (int cut = 0; cut < 2; cut++) {
			memcpy(bad, all, bytes);
			bad[i] ^= 1;
			snprintf(path, sizeof path, "%s/altered.tokens.safetensors", folder);
			yk_file_write(path, bad, cut ? i : bytes);
			d = open_data(t, "altered.tokens.safetensors", spec);
			wrong += d != NULL &&
				 memmem(all, bytes, "\"sources\"", 9) > (void *)(all + i);
			wrong += d == NULL && (!yoke_error_code() || strchr(yoke_error(), '\n'));
			wrong += d != NULL && cut;
			yoke_error_clear();
			yk_data_free(d);
		}
	ok(wrong == 0, "altered and shortened files are refused, in one line: %d are not",
	   (int)wrong);
	yk_tokenizer_free(t);
	t = open_tokenizer("llama3", TURNS PROMPT);
	d = open_data(t, "prepared.tokens.safetensors", spec);
	ok(!d && yoke_error_code() == YOKE_EINVAL, "refused: another chat template: %s",
	   yoke_error());
	yoke_error_clear();
	yk_tokenizer_free(t);
	free(all);
	free(bad);
}

// What opening the prepared file gives after a change of the tokenizer's files.
static int code_after(const char *config, const json_t *tokenizer, size_t flags)
{
	char *text = yk_json_text(tokenizer, flags);
	put("tokenizer.json", text);
	put("tokenizer_config.json", config);
	free(text);
	yoke_tokenizer *p = yoke_tokenizer_open(folder);
	struct yk_tokenizer *t = p ? yk_tokenizer_published(p, yoke_tokenizer_size(p)) : NULL;
	struct yk_data *d = t ? open_data(t, "vocabulary.tokens",
					  (struct yk_data_spec){ .context = 16, .valid = 1 }) :
				NULL;
	const int code = d ? 0 : yoke_error_code();
	if (!t)
		diag("%s", yoke_error());
	yoke_error_clear();
	yk_data_free(d);
	yk_tokenizer_free(t);
	return t ? code : YOKE_EIO;
}

// A prepared file is refused if anything that decides its tokens differs, though the vocabulary is
// the same.
static void test_vocabulary(void)
{
	static const char eos[] = "{\"eos_token\": \"<|eot|>\"}";
	static const struct {
		const char *what, *config;
		const char *path[4]; // of the changed member; a number is an index
		const char *value;   // JSON
		int code;
	} cases[] = {
		{ "nothing", eos, { NULL }, NULL, 0 },
		{ "a member that does not decide tokens", eos, { "truncation" }, "{\"a\":1}", 0 },
		{ "the first merge",
		  eos,
		  { "model", "merges", "0" },
		  "[\"u\",\"n\"]",
		  YOKE_EINVAL },
		{ "ignore_merges", eos, { "model", "ignore_merges" }, "false", YOKE_EINVAL },
		{ "lstrip of an added token",
		  eos,
		  { "added_tokens", "1", "lstrip" },
		  "true",
		  YOKE_EINVAL },
		{ "special of an added token",
		  eos,
		  { "added_tokens", "0", "special" },
		  "false",
		  YOKE_EINVAL },
		{ "the normalizer",
		  eos,
		  { "normalizer" },
		  "{\"type\":\"Prepend\",\"prepend\":\"x\"}",
		  YOKE_EINVAL },
		{ "the pre-tokenizer",
		  eos,
		  { "pre_tokenizer", "pretokenizers", "0", "behavior" },
		  "\"Removed\"",
		  YOKE_EINVAL },
		{ "the post-processor", eos, { "post_processor" }, "null", YOKE_EINVAL },
		{ "no token at the end", "{}", { NULL }, NULL, YOKE_EINVAL },
		{ "another token at the end",
		  "{\"eos_token\": \"<|begin|>\"}",
		  { NULL },
		  NULL,
		  YOKE_EINVAL },
		{ "a token at the beginning",
		  "{\"eos_token\": \"<|eot|>\", \"bos_token\": \"<|begin|>\"}",
		  { NULL },
		  NULL,
		  YOKE_EINVAL },
	};
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	struct yk_chats_prepared made;
	char path[300], out[300], config[300];
	snprintf(path, sizeof path, "%s/kept.jsonl", folder);
	snprintf(out, sizeof out, "%s/vocabulary.tokens", folder);
	put("kept.jsonl", GOOD GOOD);
	ok(t && yk_data_prepare_chats(path, t, out, &made) == 0, "a file is prepared %s",
	   yoke_error());
	yk_tokenizer_free(t);
	snprintf(config, sizeof config, "%s/tokenizer.json", folder);
	json_t *plain = yk_json_load(config);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *all = json_deep_copy(plain), *at = all;
		for (int k = 0; k < 4 && cases[i].path[k]; k++) {
			const char *key = cases[i].path[k];
			const bool last = k == 3 || !cases[i].path[k + 1];
			json_t *value =
				last ? json_loads(cases[i].value, JSON_DECODE_ANY, NULL) : NULL;
			if (json_is_array(at) && last)
				json_array_set_new(at, (size_t)atoi(key), value);
			else if (last)
				json_object_set_new(at, key, value);
			at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) :
						 json_object_get(at, key);
		}
		for (int k = 0; k < 2; k++) {
			const int got = code_after(cases[i].config, all,
						   k ? JSON_INDENT(3) | JSON_SORT_KEYS :
						       JSON_COMPACT | JSON_ENSURE_ASCII);
			ok(got == cases[i].code, "changed: %s: code %d, want %d", cases[i].what,
			   got, cases[i].code);
		}
		json_decref(all);
	}
	json_decref(plain);
}

static void put_text(FILE *f, const char *s)
{
	const uint64_t n = strlen(s);
	fwrite(&n, sizeof n, 1, f);
	fwrite(s, 1, n, f);
}

// A GGUF file of a byte-level tokenizer without tensors.
static void write_gguf(const char *path, bool bos, const char *merges[2])
{
	static const char *const tokens[] = { "a", "b", "c", "ab", "bc" };
	const uint64_t head[] = { 0, 4 + (uint64_t)bos }, counts[] = { 5, 2 };
	const uint32_t version = 3, string = 8, array = 9, number = 4, zero = 0;
	FILE *f = fopen(path, "w");
	fwrite("GGUF", 1, 4, f);
	fwrite(&version, sizeof version, 1, f);
	fwrite(head, sizeof head, 1, f);
	put_text(f, "tokenizer.ggml.model");
	fwrite(&string, sizeof string, 1, f);
	put_text(f, "gpt2");
	put_text(f, "tokenizer.ggml.pre");
	fwrite(&string, sizeof string, 1, f);
	put_text(f, "gpt-2");
	for (int k = 0; k < 2; k++) {
		put_text(f, k ? "tokenizer.ggml.merges" : "tokenizer.ggml.tokens");
		fwrite(&array, sizeof array, 1, f);
		fwrite(&string, sizeof string, 1, f);
		fwrite(&counts[k], sizeof counts[k], 1, f);
		for (uint64_t i = 0; i < counts[k]; i++)
			put_text(f, k ? merges[i] : tokens[i]);
	}
	if (bos) {
		put_text(f, "tokenizer.ggml.bos_token_id");
		fwrite(&number, sizeof number, 1, f);
		fwrite(&zero, sizeof zero, 1, f);
	}
	fclose(f);
}

static uint64_t hash_of(yoke_tokenizer *t)
{
	const uint64_t hash = t ? yk_tokenizer_hash(t) : 0;
	if (!t)
		diag("%s", yoke_error());
	yoke_error_clear();
	yoke_tokenizer_free(t);
	return hash;
}

// The hash of tokenizers of the other kinds of files.
static void test_hash(void)
{
	const char *merges[][2] = { { "a b", "b c" }, { "b c", "a b" } };
	const char *source = getenv("srcdir");
	char path[300], *data;
	uint64_t gguf[4], spm[3];
	size_t bytes;
	snprintf(path, sizeof path, "%s/t.gguf", folder);
	for (int i = 0; i < 4; i++) {
		write_gguf(path, i == 3, merges[i == 2]);
		gguf[i] = hash_of(yoke_tokenizer_open(path));
	}
	ok(gguf[0] && gguf[0] == gguf[1], "GGUF: the same file has the same hash");
	ok(gguf[2] && gguf[0] != gguf[2], "GGUF: another order of merges has another hash");
	ok(gguf[3] && gguf[0] != gguf[3], "GGUF: a token at the beginning gives another hash");
	snprintf(path, sizeof path, "%s/tests/models/spm_unigram.model", source ? source : ".");
	if (!ok(yk_file_read(path, 1 << 20, &data, &bytes) == 0 && bytes > 20,
		"a SentencePiece file %s", yoke_error()))
		return;
	for (int i = 0; i < 3; i++) {
		data[data[3] + 5] ^=
			i == 2; // of the score of the first piece: tag, length, tag, n, piece, tag
		spm[i] = hash_of(yoke_tokenizer_parse(data, bytes, "spm"));
	}
	ok(spm[0] && spm[0] == spm[1] && spm[2] && spm[0] != spm[2],
	   "SentencePiece: another score gives another hash");
	free(data);
}

// data.max bounds the arrays of prepared files.
static void test_data_max(void)
{
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	struct yk_chats_prepared made = { 0 };
	char path[300], out[300], two[700], max[40];
	snprintf(path, sizeof path, "%s/kept.jsonl", folder);
	snprintf(out, sizeof out, "%s/max.tokens", folder);
	snprintf(two, sizeof two, "%s,%s", out, out);
	put("kept.jsonl", GOOD GOOD GOOD);
	ok(t && yk_data_prepare_chats(path, t, out, &made) == 0, "a file is prepared %s",
	   yoke_error());
	const int64_t bytes = 3 * made.tokens + 9 * made.samples; // u16 and u8, i64 and u8
	for (int files = 1; files < 3; files++)
		for (int less = 0; less < 2; less++) {
			const struct yk_data_spec spec = {
				.context = 16, .valid = 1, .valid_given = true, .chats = true
			};
			snprintf(max, sizeof max, "%d", (int)(files * bytes - less));
			yoke_setting_set("data.max", max);
			struct yk_data *d = yk_data_new(files > 1 ? two : out, t, &spec);
			const int got = d ? 0 : yoke_error_code(), want = less ? YOKE_ERANGE : 0;
			ok(got == want && !strchr(yoke_error(), '\n'),
			   "data.max=%s of %d times %d bytes: code %d, want %d: %s", max, files,
			   (int)bytes, got, want, yoke_error());
			yoke_error_clear();
			yk_data_free(d);
		}
	yoke_setting_set("data.max", "8GiB");
	yk_tokenizer_free(t);
}

static bool same_files(const char *a, const char *b)
{
	char *x = NULL, *y = NULL;
	size_t n = 0, m = 0;
	const bool same = yk_file_read(a, 1 << 20, &x, &n) == 0 &&
			  yk_file_read(b, 1 << 20, &y, &m) == 0 && n == m && !memcmp(x, y, n);
	free(x);
	free(y);
	return same;
}

static void prepare_refused(const char *what, struct yk_tokenizer *t, const char *paths,
			    const char *out)
{
	struct yk_chats_prepared made;
	const int e = yk_data_prepare_chats(paths, t, out, &made);
	ok(e == YOKE_EINVAL && !strchr(yoke_error(), '\n'), "refused: %s: %s", what, yoke_error());
	yoke_error_clear();
}

// The output is neither read as data nor written over it.
static void test_prepare_out(void)
{
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	struct yk_chats_prepared made[3] = { { 0 } };
	char dir[300], a[320], kept[320], out[320], link[320], left[380], list[700];
	snprintf(dir, sizeof dir, "%s/both", folder);
	snprintf(a, sizeof a, "%s/a.jsonl", dir);
	snprintf(kept, sizeof kept, "%s/kept.jsonl", folder);
	snprintf(out, sizeof out, "%s/all.tokens", dir);
	snprintf(link, sizeof link, "%s/link.jsonl", folder);
	mkdir(dir, 0700);
	put("both/a.jsonl", GOOD GOOD);
	put("kept.jsonl", GOOD GOOD);
	const pid_t child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	snprintf(left, sizeof left, "%s.%d-1.tmp", out, (int)child);
	yk_file_write(left, "x", 1);
	for (int i = 0; i < 3; i++) {
		const int e = yk_data_prepare_chats(dir, t, out, &made[i]);
		ok(e == 0 && made[i].samples == 2,
		   "time %d: a folder with its output: %d samples, want 2 %s", i,
		   (int)made[i].samples, yoke_error());
		yoke_error_clear();
	}
	ok(access(left, F_OK) < 0, "the temporary file of a killed run is removed");
	prepare_refused("a file as its output", t, a, a);
	snprintf(list, sizeof list, "%s,%s", kept, a);
	prepare_refused("one of two files as output", t, list, a);
	ok(symlink("both/a.jsonl", link) == 0, "a link");
	prepare_refused("a link to a file as its output", t, a, link);
	ok(same_files(a, kept), "the data is unchanged");
	snprintf(left, sizeof left, "%s/piped.tokens", folder);
	ok(freopen(kept, "r", stdin) != NULL, "conversations on standard input");
	prepare_refused("standard input", t, "-", left);
	snprintf(list, sizeof list, "%s,-", kept);
	prepare_refused("standard input besides a file", t, list, left);
	ok(access(left, F_OK) < 0, "nothing is written");
	yk_tokenizer_free(t);
}

// Windows of prepared texts that have no target are left out, and so are texts without any.
static void test_without_targets(void)
{
	static const struct {
		int tokens, target; // the only one
		int64_t windows;
	} cases[] = { { 11, 6, 1 }, { 11, 10, 1 }, { 11, 4, 1 }, { 11, 0, 0 }, { 1, 0, 0 } };
	struct yk_tokenizer *t = open_tokenizer("llama3", TURNS PROMPT);
	const int32_t size = yk_tokenizer_size(t);
	char path[300];
	snprintf(path, sizeof path, "%s/masked.tokens", folder);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int32_t id[11] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
		unsigned char none[11] = { 0 }, one[11] = { 0 }, last[2] = { 0, 1 };
		const struct yk_sources sources = { 0 };
		struct yk_chat_store s = { 0 };
		one[cases[i].target] = 1;
		yk_chat_store_add(&s, size, YK_CHAT_TEXT,
				  &(struct yk_chat_tokens){ id, none, (size_t)cases[i].tokens });
		yk_chat_store_add(&s, size, YK_CHAT_TEXT,
				  &(struct yk_chat_tokens){ id, one, (size_t)cases[i].tokens });
		yk_chat_store_add(&s, size, YK_CHAT_TEXT, &(struct yk_chat_tokens){ id, last, 2 });
		const int e = yk_chat_store_write(&s, t, &sources, path);
		yk_chat_store_fini(&s);
		struct yk_data *d =
			e < 0 ? NULL :
				open_data(t, "masked.tokens",
					  (struct yk_data_spec){ .context = 4, .valid = 1 });
		const int64_t want = cases[i].windows + 1, got = d ? yk_data_valid_windows(d) : 0;
		int64_t targets = 0;
		bool each = true;
		for (int64_t w = 0; w < got; w++) {
			const int64_t n = yk_data_valid_targets(d, w);
			each = each && n > 0;
			targets += n;
		}
		ok(got == want && each && targets == want,
		   "a text of %d tokens with target %d: %d windows with %d targets, want %d %s",
		   cases[i].tokens, cases[i].target, (int)got, (int)targets, (int)want,
		   yoke_error());
		yoke_error_clear();
		yk_data_free(d);
	}
	yk_tokenizer_free(t);
}

int main(void)
{
	tap_seed();
	tap_folder();
	mkdir(folder, 0777);
	test_targets();
	test_list();
	test_turns();
	test_typed_tokens();
	test_templates_refused();
	const int64_t sizes[][2] = { { 1, 1 },    { 1, 7 },      { 5, 1 },      { 40, 13 },
				     { 300, 64 }, { 200, 1000 }, { 2000, 255 }, { 700, 17 } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		check_packing(sizes[i][0], sizes[i][1], true);
		check_packing(sizes[i][0], sizes[i][1], false);
	}
	test_windows();
	test_lines();
	test_lines_refused();
	test_cut();
	test_prepared();
	test_vocabulary();
	test_hash();
	test_data_max();
	test_prepare_out();
	test_without_targets();
	return done();
}
