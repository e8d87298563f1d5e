// SPDX-License-Identifier: Apache-2.0
// Parses and checks a line of conversations.
#include "config.h"

#include "data/chat_line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

static const char *const roles[] = {
	"system", "developer", "user", "assistant", "tool", "function"
};
enum { ROLES = sizeof roles / sizeof *roles, MESSAGES_MAX = 4096, SHOWN = 40 };

static const char *kind(const json_t *j)
{
	static const char *const names[] = { "an object", "an array", "a string", "a number",
					     "a number",  "true",     "false",    "null" };
	return j ? names[json_typeof(j)] : "missing";
}

// ---- messages ----

static int check_role(const json_t *m, const char *what, const char *list, size_t i)
{
	const char *role = json_string_value(json_object_get(m, "role"));
	if (!role)
		return yk_fail(
			YOKE_EFORMAT, "%s: %s[%zu].role is %s; it must be a string%s", what, list,
			i, kind(json_object_get(m, "role")),
			json_object_get(m, "from") ?
				": rename \"from\" and \"value\" to \"role\" and \"content\"" :
				"");
	for (int k = 0; k < ROLES; k++)
		if (!strcmp(role, roles[k]))
			return 0;
	return yk_fail(YOKE_EFORMAT,
		       "%s: %s[%zu].role is '%.*s'; it must be system, developer, user, assistant, "
		       "tool or function",
		       what, list, i, SHOWN, role);
}

// Replaces a content that is a list of texts by their concatenation.
static int join_parts(json_t *m, const json_t *parts, const char *what, const char *list, size_t i)
{
	size_t bytes = 0, n = json_array_size(parts);
	for (size_t k = 0; k < n; k++) {
		const json_t *p = json_array_get(parts, k), *text = json_object_get(p, "text");
		const char *type = json_string_value(json_object_get(p, "type"));
		if (!json_is_object(p) || !type)
			return yk_fail(YOKE_EFORMAT,
				       "%s: %s[%zu].content[%zu] must be an object with a \"type\"",
				       what, list, i, k);
		if (strcmp(type, "text"))
			return yk_fail(YOKE_EUNSUPPORTED,
				       "%s: %s[%zu].content[%zu] is of type '%.*s'; models here "
				       "read text only: leave it out",
				       what, list, i, k, SHOWN, type);
		if (!json_is_string(text))
			return yk_fail(YOKE_EFORMAT,
				       "%s: %s[%zu].content[%zu].text is %s; it must be a string",
				       what, list, i, k, kind(text));
		bytes += json_string_length(text);
	}
	char *joined = malloc(bytes + 1), *to = joined;
	for (size_t k = 0; k < n && joined; k++) {
		const json_t *text = json_object_get(json_array_get(parts, k), "text");
		memcpy(to, json_string_value(text), json_string_length(text));
		to += json_string_length(text);
	}
	const bool good = joined && json_object_set_new(m, "content",
							json_stringn_nocheck(joined, bytes)) == 0;
	free(joined);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
}

static int check_content(json_t *m, const char *what, const char *list, size_t i)
{
	json_t *content = json_object_get(m, "content");
	if (json_is_string(content))
		return 0;
	if (json_is_array(content))
		return join_parts(m, content, what, list, i);
	// an answer that consists of calls of tools
	if ((!content || json_is_null(content)) &&
	    json_array_size(json_object_get(m, "tool_calls")) > 0)
		return 0;
	return yk_fail(YOKE_EFORMAT,
		       "%s: %s[%zu].content is %s; it must be a string, or a list of {\"type\": "
		       "\"text\", \"text\": ..}",
		       what, list, i, kind(content));
}

static int check_messages(json_t *messages, const char *what, const char *list)
{
	const size_t n = json_array_size(messages);
	int e = 0;
	if (!json_is_array(messages))
		return yk_fail(YOKE_EFORMAT,
			       "%s: %s is %s; it must be a list of {\"role\": .., \"content\": ..}",
			       what, list, kind(messages));
	if (n == 0 || n > MESSAGES_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: %s has %zu messages; it must have 1 to %d", what,
			       list, n, MESSAGES_MAX);
	for (size_t i = 0; i < n && e == 0; i++) {
		json_t *m = json_array_get(messages, i);
		if (!json_is_object(m))
			return yk_fail(
				YOKE_EFORMAT,
				"%s: %s[%zu] is %s; it must be {\"role\": .., \"content\": ..}",
				what, list, i, kind(m));
		e = check_role(m, what, list, i);
		if (e == 0)
			e = check_content(m, what, list, i);
	}
	return e;
}

// ---- lines ----

static int take_tools(struct yk_chat_line *l, const char *what)
{
	l->tools = json_object_get(l->root, "tools");
	if (json_is_null(l->tools) || (json_is_array(l->tools) && json_array_size(l->tools) == 0))
		l->tools = NULL;
	if (l->tools && !json_is_array(l->tools))
		return yk_fail(YOKE_EFORMAT, "%s: tools is %s; it must be a list of functions",
			       what, kind(l->tools));
	return 0;
}

static int take_string(const json_t *root, const char *key, const char *what, const char **to,
		       size_t *bytes)
{
	const json_t *j = json_object_get(root, key);
	if (!json_is_string(j))
		return yk_fail(YOKE_EFORMAT, "%s: %s is %s; it must be a string", what, key,
			       kind(j));
	*to = json_string_value(j);
	*bytes = json_string_length(j);
	return 0;
}

// Two strings, or two lists of messages, which become one.
static int take_pair(struct yk_chat_line *l, const char *what)
{
	json_t *prompt = json_object_get(l->root, "prompt"),
	       *completion = json_object_get(l->root, "completion");
	int e;
	if (!json_is_array(prompt) && !json_is_array(completion)) {
		e = take_string(l->root, "prompt", what, &l->prompt, &l->prompt_bytes);
		return e < 0 ? e :
			       take_string(l->root, "completion", what, &l->text, &l->text_bytes);
	}
	e = check_messages(prompt, what, "prompt");
	if (e == 0)
		e = check_messages(completion, what, "completion");
	if (e < 0)
		return e;
	l->from = json_array_size(prompt);
	l->messages = prompt;
	return json_array_extend(prompt, completion) < 0 ?
		       yk_fail(YOKE_ENOMEM, "%s: no memory", what) :
		       take_tools(l, what);
}

// A member that is present and not null: tools that write tables as lines give each column to each
// line.
static json_t *given(const json_t *root, const char *key)
{
	json_t *j = json_object_get(root, key);
	return json_is_null(j) ? NULL : j;
}

// Refuses a line of two forms, of which one would be left out.
static int check_forms(const json_t *root, const char *what)
{
	const char *found[3];
	int n = 0;
	if (given(root, "messages"))
		found[n++] = "\"messages\"";
	if (given(root, "completion"))
		found[n++] =
			given(root, "prompt") ? "\"prompt\" with \"completion\"" : "\"completion\"";
	if (given(root, "text"))
		found[n++] = "\"text\"";
	return n < 2 ? 0 :
		       yk_fail(YOKE_EFORMAT,
			       "%s: has %s and %s, and a line is one of them; remove the other, or "
			       "name the string to train on with field=",
			       what, found[0], found[1]);
}

static int take(struct yk_chat_line *l, const char *what)
{
	if (!json_is_object(l->root))
		return yk_fail(YOKE_EFORMAT,
			       "%s: is %s; a line must be an object such as {\"messages\": [..]}",
			       what, kind(l->root));
	const int forms = check_forms(l->root, what);
	if (forms < 0)
		return forms;
	l->messages = given(l->root, "messages");
	if (l->messages) {
		const int e = check_messages(l->messages, what, "messages");
		return e < 0 ? e : take_tools(l, what);
	}
	if (given(l->root, "prompt") || given(l->root, "completion"))
		return take_pair(l, what);
	if (given(l->root, "text"))
		return take_string(l->root, "text", what, &l->text, &l->text_bytes);
	return yk_fail(
		YOKE_EFORMAT,
		"%s: has no \"messages\", no \"prompt\" with \"completion\" and no \"text\"; %s",
		what,
		json_object_get(l->root, "conversations") ?
			"rename \"conversations\" to \"messages\"" :
			"name the string that is the text with field=, or convert the file");
}

int yk_chat_line_parse(const char *text, size_t bytes, const char *what, struct yk_chat_line *to)
{
	struct yk_chat_line l = { .root = yk_json_parse(text, bytes, what) };
	if (!l.root)
		return yk_error_last();
	const int e = take(&l, what);
	if (e < 0)
		yk_chat_line_fini(&l);
	else
		*to = l;
	return e;
}

void yk_chat_line_fini(struct yk_chat_line *l)
{
	json_decref(l->root);
}
