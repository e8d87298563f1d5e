// SPDX-License-Identifier: Apache-2.0
// yoke chat: a conversation in a terminal, or with lines from a pipe.
#include "config.h"

#include "tool/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "tool/chat.h"
#include "tool/chat_input.h"

struct conversation {
	struct yk_chat chat;
	struct yk_chat_input input;
	bool terminal;    // standard output is one
	bool leave, idle; // idle: the last event was an interrupt
	bool failed;
	json_t *refused; // the last message that could not be answered; NULL: none
};

// Notes and errors go to standard error, so that a pipe receives the answers only.
static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("yoke chat: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

// A message or a command that fails does not end the conversation; the exit status then reports the
// failure to scripts.
static void report(struct conversation *t)
{
	if (t->input.terminal)
		note("%s", yoke_error());
	else
		note("line %d: %s", t->input.line, yoke_error());
	yoke_error_clear();
	t->failed = true;
}

// ---- answers ----

static int write_all(const char *s, size_t n)
{
	if (fwrite(s, 1, n, stdout) == n)
		return 0;
	return yk_fail(YOKE_EIO, "standard output: %s", strerror(errno));
}

// Control characters of a model must not reach a terminal, where they could do anything.
static int write_text(const struct conversation *t, const char *s, size_t n)
{
	int e = 0;
	for (size_t i = 0; i < n && e == 0;) {
		const unsigned char c = (unsigned char)s[i];
		const bool c1 = c == 0xc2 && i + 1 < n && (unsigned char)s[i + 1] < 0xa0;
		const bool control =
			t->terminal && ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || c1);
		const size_t size = yk_char_size(s[i]);
		e = control ? write_all("\xef\xbf\xbd", 3) : write_all(s + i, size);
		i += size;
	}
	return e;
}

static int emit(void *arg, const char *text, size_t bytes)
{
	struct conversation *t = arg;
	int e = write_text(t, text, bytes);
	if (e == 0 && fflush(stdout) == EOF)
		e = yk_fail(YOKE_EIO, "standard output: %s", strerror(errno));
	return e == 0 ? yk_interrupts_pending(t->input.interrupts) : e;
}

// Answers the last message.  *failed: it was not answered, and no message was added.
static int answer(struct conversation *t, bool *failed)
{
	enum yk_chat_end end = YK_CHAT_ENDED;
	size_t dropped = 0;
	const int e = yk_chat_answer(&t->chat, emit, t, &end, &dropped);
	*failed = e < 0;
	if (e < 0) {
		if (yk_reader_exited())
			return e;
		report(t);
		return 0;
	}
	const int written = write_all("\n", 1);
	if (dropped)
		note("the %zu oldest messages do not fit the context of %" PRId64
		     " tokens and are left out; /reset begins anew",
		     dropped, t->chat.o->model.net->shape.context);
	if (end == YK_CHAT_LIMIT)
		note("the answer ended after tokens=%" PRId64, t->chat.limit);
	if (end == YK_CHAT_FULL)
		note("the answer ended because the context of %" PRId64 " tokens is full",
		     t->chat.o->model.net->shape.context);
	if (end == YK_CHAT_STOPPED)
		t->idle = true;
	return written < 0 || fflush(stdout) == EOF ? YOKE_EIO : 0;
}

// ---- commands ----

static int print_help(struct conversation *t, const char *arg)
{
	(void)t;
	(void)arg;
	fputs("/reset         forgets the conversation, but not the system message\n"
	      "/system TEXT   replaces the system message; without TEXT removes it\n"
	      "/regenerate    answers the last message again, with other random numbers\n"
	      "/resend        sends the last message that was refused again\n"
	      "/save FILE     appends the conversation to FILE, as a line of .jsonl\n"
	      "/load FILE     continues the last conversation in FILE\n"
	      "/stats         prints the numbers of messages and tokens\n"
	      "/exit          ends the program, like Ctrl-D\n"
	      "After a backslash at the end of a line a message continues; \"\"\" begins and ends several lines. A "
	      "blank before / makes it text.\n"
	      "Ctrl-C ends an answer.\n",
	      stderr);
	return 0;
}

static int reset(struct conversation *t, const char *arg)
{
	(void)arg;
	return yk_chat_reset(&t->chat);
}

static int set_system(struct conversation *t, const char *arg)
{
	return yk_chat_system(&t->chat, arg, strlen(arg));
}

// Answers a message of the user; if that fails, the message is kept for /resend.
static int answer_new(struct conversation *t)
{
	const size_t n = json_array_size(t->chat.messages);
	json_t *m = json_incref(json_array_get(t->chat.messages, n - 1));
	bool failed;
	const int e = answer(t, &failed);
	if (failed) {
		yk_chat_pop(&t->chat, "user");
		json_decref(t->refused);
		t->refused = json_incref(m);
	}
	json_decref(m);
	return e;
}

static int resend(struct conversation *t, const char *arg)
{
	(void)arg;
	if (!t->refused)
		return yk_fail(YOKE_EINVAL, "/resend: no message was refused");
	if (json_array_append(t->chat.messages, t->refused) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory for a message");
	json_decref(t->refused);
	t->refused = NULL;
	return answer_new(t);
}

// If it fails, the previous answer is kept.
static int regenerate(struct conversation *t, const char *arg)
{
	json_t *messages = t->chat.messages;
	const size_t n = json_array_size(messages);
	json_t *before = n ? json_incref(json_array_get(messages, n - 1)) : NULL;
	const bool taken = yk_chat_pop(&t->chat, "assistant");
	const char *role = json_string_value(
		json_object_get(json_array_get(messages, json_array_size(messages) - 1), "role"));
	bool failed = true;
	int e = 0;
	(void)arg;
	if (role && !strcmp(role, "user"))
		e = answer(t, &failed);
	else
		e = yk_fail(YOKE_EINVAL,
			    "/regenerate: there is no message to answer; write one first");
	if (failed && taken && json_array_append(messages, before) < 0)
		e = yk_fail(YOKE_ENOMEM, "no memory for a message");
	json_decref(before);
	return e;
}

static int save(struct conversation *t, const char *arg)
{
	if (!*arg)
		return yk_fail(YOKE_EINVAL, "/save: no file given: /save FILE");
	const int e = yk_chat_save(&t->chat, arg);
	if (e == 0)
		note("%zu messages were appended to %s", json_array_size(t->chat.messages), arg);
	return e;
}

static int load(struct conversation *t, const char *arg)
{
	if (!*arg)
		return yk_fail(YOKE_EINVAL, "/load: no file given: /load FILE");
	const int e = yk_chat_load(&t->chat, arg);
	if (e == 0)
		note("%zu messages from %s", json_array_size(t->chat.messages), arg);
	return e;
}

static int stats(struct conversation *t, const char *arg)
{
	const struct yk_chat *c = &t->chat;
	(void)arg;
	note("messages %zu, answers %" PRId64 ", prompt %" PRId64 " of %" PRId64
	     " tokens, computed %" PRId64 " tokens",
	     json_array_size(c->messages), c->answers, c->prompt, c->o->model.net->shape.context,
	     c->generation ? yk_generation_computed(c->generation) : 0);
	return 0;
}

static int leave(struct conversation *t, const char *arg)
{
	(void)arg;
	t->leave = true;
	return 0;
}

static int run_command(struct conversation *t, const char *line)
{
	static const struct {
		const char *name;
		int (*run)(struct conversation *, const char *arg);
	} commands[] = {
		{ "/reset", reset },   { "/system", set_system }, { "/regenerate", regenerate },
		{ "/resend", resend }, { "/save", save },         { "/load", load },
		{ "/stats", stats },   { "/help", print_help },     { "/?", print_help },
		{ "/exit", leave },    { "/quit", leave },        { "/bye", leave },
	};
	const size_t n = strcspn(line, " \t\n");
	const char *arg = line + n + strspn(line + n, " \t\n");
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strlen(commands[i].name) == n && !memcmp(commands[i].name, line, n))
			return commands[i].run(t, arg);
	return yk_fail(
		YOKE_EINVAL,
		"%.*s: no such command; /help lists them, and a blank before / makes it text",
		n < 40 ? (int)n : 40, line);
}

// ---- conversation ----

static int send_line(struct conversation *t, struct yk_string *line)
{
	yk_string_add(line, "", 1);
	if (line->failed)
		return yk_fail(YOKE_ENOMEM, "no memory for a message");
	const size_t n = line->n - 1;
	if (strspn(line->s, " \t\r\n") == n)
		return 0;
	if (line->s[0] == '/' && strlen(line->s) == n)
		return run_command(t, line->s);
	const int e = yk_chat_add(&t->chat, "user", line->s, n);
	return e < 0 ? e : answer_new(t);
}

static int run_conversation(struct conversation *t)
{
	struct yk_string line = { 0 };
	enum yk_chat_read what = YK_READ_MESSAGE;
	int e = 0;
	while (!t->leave && e == 0) {
		e = yk_chat_read(&t->input, &line, &what);
		if (e == YOKE_ERANGE) {
			report(t);
			t->idle = false;
			e = 0;
			continue;
		}
		if (e < 0 || what == YK_READ_END)
			break;
		if (what == YK_READ_INTERRUPT) {
			const bool known = !yk_interrupts_pending(t->input.interrupts);
			yk_interrupts_take(t->input.interrupts);
			if (known)
				continue;
			fputc('\n', stderr);
			t->idle = t->idle && !t->input.begun;
			if (t->idle)
				break;
			if (t->input.begun)
				continue;
			note("Ctrl-C again, Ctrl-D or /exit leaves");
			t->idle = true;
			continue;
		}
		t->idle = false;
		yk_interrupts_take(t->input.interrupts);
		e = send_line(t, &line);
		yk_interrupts_take(t->input.interrupts);
		if (e < 0 && !yk_reader_exited()) {
			report(t);
			e = 0;
		}
	}
	if (t->input.terminal && what == YK_READ_END)
		fputc('\n', stderr);
	yk_string_fini(&line);
	return e;
}

static int chat(const struct yk_opened *o, void *arg)
{
	struct yk_interrupts *interrupts = arg;
	struct conversation t = { .terminal = isatty(STDOUT_FILENO) };
	int e = yk_chat_init(&t.chat, o);
	yk_chat_input_begin(&t.input, interrupts);
	if (e == 0) {
		atomic_store(&interrupts->ready, true);
		if (t.input.terminal)
			fprintf(stderr, "%s, context %" PRId64 "; /help lists the commands\n",
				o->folder, o->model.net->shape.context);
		e = run_conversation(&t);
	}
	if (e == 0 && t.failed && !t.input.terminal)
		e = yk_fail(YOKE_EINVAL, "not all lines were answered; the messages above say why");
	atomic_store(&interrupts->ready, false);
	json_decref(t.refused);
	yk_chat_input_end(&t.input);
	yk_chat_fini(&t.chat);
	return e;
}

int yk_cmd_chat(int argc, char **argv)
{
	struct yk_interrupts interrupts;
	if (yk_interrupts_begin(&interrupts) < 0)
		return yk_failed(argv[0]);
	const int status = yk_with_model(YK_C, argc, argv, chat, &interrupts);
	yk_interrupts_end(&interrupts);
	return status;
}
