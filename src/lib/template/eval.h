// SPDX-License-Identifier: Apache-2.0
// Evaluation of expressions and statements.
#ifndef YK_TEMPLATE_EVAL_H
#define YK_TEMPLATE_EVAL_H

#include "template/functions.h"
#include "template/syntax.h"

// Variables of a scope.
struct yk_v_frame {
	struct yk_v_frame *up;
	struct yk_dict vars;
};

struct yk_macro {
	const struct yk_syntax_node *node; // its args and list
	struct yk_v_frame *frame;          // of its definition
};

struct yk_loop {
	const struct yk_items *items;
	int64_t index, depth;
	const struct yk_syntax_node *node;
	struct yk_v_frame *frame;  // around the loop
	struct yk_v_value changed; // last arguments of changed()
};

enum { YK_SIGNAL_NONE, YK_SIGNAL_BREAK, YK_SIGNAL_CONTINUE };

struct yk_v_frame *yk_frame_new(struct yk_render *, struct yk_v_frame *up);
void yk_frame_set(struct yk_render *, struct yk_v_frame *, const struct yk_chars *name,
		  struct yk_v_value);

struct yk_v_value yk_eval(struct yk_render *, struct yk_v_frame *, const struct yk_syntax_node *);
struct yk_args yk_eval_args(struct yk_render *, struct yk_v_frame *,
			    const struct yk_syntax_node *list);
struct yk_v_value yk_call_value(struct yk_render *, struct yk_v_value callee,
				const struct yk_args *);

// Statements.
void yk_statements(struct yk_render *, struct yk_v_frame *, const struct yk_syntax_node *list);
// Calls of macros, and of `loop` in recursive loops.
struct yk_v_value yk_macro_call(struct yk_render *, const struct yk_macro *,
				const struct yk_args *);
struct yk_v_value yk_loop_call(struct yk_render *, const struct yk_loop *, struct yk_v_value items);
struct yk_v_value yk_loop_attr(struct yk_render *, struct yk_v_value loop, const char *name,
			       size_t n);

#endif
