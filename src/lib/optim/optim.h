// SPDX-License-Identifier: Apache-2.0
// Optimizers: one table, whose rows say what each is for an element, and what runs them over all tensors
// of a group in one launch a pass.
#ifndef YK_OPTIM_OPTIM_H
#define YK_OPTIM_OPTIM_H

#include <stdbool.h>

#include "graph/list.h"
#include "optim/options.h"
#include "optim/schedule.h"
#include "yoke-optim.h"

// ---- the table ----

// A piece of the formula of an update (kernel/formula.h), in which options are constants by their names:
// g is the gradient, scaled and clipped; p and the states get new values.
#define YK_OPTIM_BETWEEN "@" // the text is that of the pass, see yk_optim_map
struct yk_optim_part {
	const char *when;  // "momentum": where that option is not 0; "!momentum"; "window_by=2"; NULL: always
	const char *list;  // a state that it adds, as the formula names it, or NULL
	const char *state; // the same as files name it
	const char *fill;  // the option that it is filled with at the start; NULL: 0
	const char *text;
};

// A number that changes with the step t = 1, 2, ..
struct yk_optim_number {
	const char *name;
	double (*at)(const double *option, int64_t t);
};

struct yk_optim_group;
struct yk_optim_pass;

struct yk_optim_kind {
	const char *name;
	const char *options; // "lr=0.001 momentum=0": those it has, with their defaults
	struct yk_optim_part part[8];
	struct yk_optim_number number[3];
	double (*slower)(const double *option, int64_t t); // what divides the learning rate, or NULL
	// What a group is updated by, where that is not one map; and what updates all groups together.
	int (*update)(const struct yk_optim_pass *, struct yk_optim_group *);
	int (*together)(struct yk_optim_pass *);
	struct yk_optim_scalar { // numbers on the device, of no parameter
		const char *name;
		double first;
	} scalar[4];
};
extern const struct yk_optim_kind yk_optim_kinds[];
extern const int yk_optim_kind_count;
const struct yk_optim_kind *yk_optim_kind_find(const char *name); // NULL: there is none

// ---- settings ----

struct yk_optim_row {
	const char *name;
	enum { YK_OPTIM_INT, YK_OPTIM_REAL, YK_OPTIM_CHOICE } type;
	double least, most;
	const char *words; // each with a blank before it
};
extern const struct yk_optim_row yk_optim_rows[YK_OPTIM_OPTION_COUNT];

// An option that is not given, where that is no number.
#define YK_OPTIM_NOT_GIVEN (-1.0)

// Does the kind have the option?
bool yk_optim_has(const struct yk_optim_kind *, int option);
// All defaults.
void yk_optim_defaults(const struct yk_optim_kind *, double *option);
// "key=value key=value" over what is there; on an error nothing is changed.
int yk_optim_settings(const struct yk_optim_kind *, const char *call, const char *text, double *option);
struct yk_lr_schedule yk_optim_schedule(const double *option);
// A value as settings have it, nothing when it is not given; returns the length, as snprintf.
size_t yk_optim_value_text(int option, double value, char *to, size_t room);

// ---- state ----

enum { YK_OPTIM_STATES = 4, YK_OPTIM_NUMBERS = 3, YK_OPTIM_SCALARS = 4 };

struct yk_optim_member { // a parameter
	char *name;
	yoke_tensor *p;
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK]; // its own: p may have been freed, by a module that was moved
	double option[YK_OPTIM_OPTION_COUNT];
	int states;
	yoke_tensor **state; // those of the parts, then the window's
};

// Where others update the rest of each parameter (Rajbhandari et al. 2020): what this one does, and whom it tells.
struct yk_optim_cut {
	int64_t from, to; // of the parameter's elements, as one row
	int64_t all;      // of those
};
struct yk_optim_share {
	const struct yk_optim_cut *cut; // by member: from a multiple of YK_OPTIM_PIECE, to one or the end.  NULL: all is
	                                // updated here
	// The elements of each member's cut as they are to be, flat, NULL where there are none: to be assigned, as
	// those of the others are.
	int (*renew)(void *arg, yoke_tensor *const *piece);
	bool held; // the parameters that were added are the cuts themselves: nobody is told
	// The sums of f64 [n] over all who have cuts.
	yoke_tensor *(*sum)(void *arg, yoke_tensor *);
	// Where the members are parts of tensors, some of them the same at all who have such parts: which this one counts
	// in sums over those tensors, by member; and the sums of f32 or f64 [n] over all of them.  NULL: they are all there is.
	const bool *counts;
	yoke_tensor *(*total)(void *arg, yoke_tensor *);
	// Where the members are some of the f32 tensors whose norm it is, and others update the rest: all of them, in order,
	// and the sums of f64 [n] over all who have some.  NULL: members are all there are.
	const struct yk_optim_tensor *tensor;
	int tensors;
	yoke_tensor *(*join)(void *arg, yoke_tensor *);
	void *arg;
};
struct yk_optim_tensor {
	const char *name;
	int64_t elements; // of the part that is a member's, here or there
	int member;       // -1: another's
	bool counts;      // in sums over parts, as those of the members
};
// Elements of a piece: norms are sums over pieces of tensors, the last of each shorter, in order, so that those who
// have a cut each can have parts of it.  It is what CPU kernels join sums by, which so have the same bits.
enum { YK_OPTIM_PIECE = 16384 };

// Members of one dtype and equal options, which are updated together.
struct yk_optim_group {
	const double *option;
	int dtype, n, *member;
	yoke_tensor **p, **g, **P;         // parameters; of this step: gradients, what they are preconditioned with
	yoke_tensor **made;                // of this step: parameters that others are told of
	int states, window;
	const char *list[YK_OPTIM_STATES]; // names of states in formulas
	yoke_tensor ***state;              // [states + window][n]
	yoke_tensor *lr, *number[YK_OPTIM_NUMBERS]; // host scalars
	struct yk_optim_formula *formula;           // made so far (map.c)
};

struct yoke_optim {
	const struct yk_optim_kind *kind;
	struct yoke_context *ctx;          // of the parameters; NULL: there are none yet
	double option[YK_OPTIM_OPTION_COUNT];
	int n, groups;
	struct yk_optim_member *member;
	size_t member_cap;
	struct yk_optim_group *group;      // made when a step needs them
	int64_t t;                         // real steps done
	struct yk_optim_share share;
	yoke_tensor **piece;               // of this step, by member: for share.renew
	yoke_tensor *scalar[YK_OPTIM_SCALARS];
	// Gradients of a dtype, f32 and f64, or pieces of them, and with check the squares of their norms, [n + 1], the
	// sum last, which stay as they are once that is not finite.
	struct yk_optim_norm {
		int n, *tensor; // of share.tensor, or a member
		struct yk_optim_cut *piece; // NULL: they are whole
		yoke_tensor **g, *latch;    // g: of those that are here
		yoke_tensor *after;         // f32 []: steps since that of the latch, which changed nothing; NULL: not counted
	} norm[2];
	bool pieces; // norms are by pieces
	bool numbered; // t comes from the caller (yk_optim_at), who does not go on after a step that was not finite
};

int yk_optim_parameters(const struct yoke_optim *); // how many
// Norms are sums over pieces, as those that share parameters out have them.  It updates a part of each parameter,
// whose states alone it has, and takes gradients of those: flat, of a cut's elements, NULL where there are none.  Before
// the states are made; the cuts are the caller's, and stay.
int yk_optim_share(struct yoke_optim *, const struct yk_optim_share *);
void yk_optim_unshare(struct yoke_optim *); // states of cuts are freed
// Of gradients as the next step takes them, times scale: the square of each one's norm, of f32 parameters by pieces,
// f32 [n], and of others' tensors theirs, of which there are so many in all.
yoke_tensor *yk_optim_squares(struct yoke_optim *, yoke_tensor *const *g, yoke_tensor *scale);
int yk_optim_tensors(const struct yoke_optim *);
const char *yk_optim_tensor_name(const struct yoke_optim *, int i);
// f32 [n], sums over parts of members, as sums over the tensors; members repeat where they end.
yoke_tensor *yk_optim_total(const struct yoke_optim *, const int *member, int members, int n, yoke_tensor *);
// Makes the states, as the first step does else.
int yk_optim_states_ready(struct yoke_optim *);
// The variables of all states, in the order of files: "m.NAME", "optimizer.theta" into name.
enum { YK_OPTIM_NAME = 512 };
int yk_optim_state_count(const struct yoke_optim *);
yoke_tensor *yk_optim_state_at(const struct yoke_optim *, int i, char *name);
// The steps done, of an optimizer whose states were loaded.
void yk_optim_at(struct yoke_optim *, int64_t t);
void yk_optim_unnumber(struct yoke_optim *); // it counts for itself again
// How many of the counted steps changed nothing because gradients were not finite.  Waits for pending evaluations.
int yk_optim_lost(const struct yoke_optim *, int64_t *lost);
// The parameter of the first gradient that was not finite, with check; NULL: none.
const char *yk_optim_bad(struct yoke_optim *);

// Of a member with these options: how many states its parts have, and how many the window has behind them.
int yk_optim_part_states(const struct yk_optim_kind *, const double *option);
int yk_optim_window(const double *option);
bool yk_optim_same_states(const struct yk_optim_kind *, const double *a, const double *b);
// Is the part one of those that these options take?
bool yk_optim_takes(const struct yk_optim_part *, const double *option);
int yk_optim_states_make(const struct yoke_optim *, struct yk_optim_member *);
void yk_optim_states_free(struct yk_optim_member *);
int yk_optim_scalars_make(struct yoke_optim *);
void yk_optim_scalars_free(struct yoke_optim *);
// Groups and norms of the members as they are.
int yk_optim_groups_make(struct yoke_optim *);
void yk_optim_groups_free(struct yoke_optim *);

// ---- a step ----

struct yk_optim_pass {
	struct yoke_optim *o;
	int64_t t;
	const struct yoke_step *given;
	yoke_tensor *scale, *skip, *total, *latched; // numbers, or YOKE_NONE; total: the square of the norm
	yoke_tensor *beta;                           // accelerated: how far it goes on
};

// One launch: a formula over a group.  Lists, numbers and constants are those whose names are in it.
struct yk_optim_map {
	const char *text;    // NULL: the kind's parts
	const char *between; // what is in the part for it
	const char *results; // NULL: p and the states; a name that is no list is `made`
	const char *list;    // a list of this map's, by its name, or NULL
	yoke_tensor *const *of;
	yoke_tensor **made;
	const char *number[2]; // numbers of this map's
	yoke_tensor *value[2];
	int slot;              // of the window, which formulas name w
};
void yk_optim_formulas_free(struct yk_optim_formula *);
int yk_optim_map(const struct yk_optim_pass *, struct yk_optim_group *, const struct yk_optim_map *);
// The sum of the map's one result over a group; each: as yk_list_sum; wide: in f64.
yoke_tensor *yk_optim_sum(const struct yk_optim_pass *, struct yk_optim_group *,
			  const struct yk_optim_map *, int each, bool wide);
// Has somebody else parts of the parameters: hands over what those here became, which other passes of the step, and a
// loss that is asked, see then.
int yk_optim_renew(struct yoke_optim *);

// ---- pieces ----

// The member that tensor i of a norm is; -1: another's.
int yk_optim_member_of(const struct yoke_optim *, int i);
// Is piece k one of a cut that is updated here?  How many are?
bool yk_optim_piece_here(const struct yoke_optim *, const struct yk_optim_norm *, int k);
int yk_optim_pieces_here(const struct yoke_optim *, const struct yk_optim_norm *);
// A number of each piece, f64 [n]: `mine` are those of the pieces here, NULL if there are none.  By all who have cuts.
yoke_tensor *yk_optim_pieces_join(const struct yoke_optim *, const struct yk_optim_norm *, yoke_tensor *mine);
// The sum of f64 [n] in order, one after the other: as a list of n tensors of one.  tensor: NULL, or whose they are, of
// which those count that the share says.
yoke_tensor *yk_optim_in_order(const struct yoke_optim *, yoke_tensor *x, int n, const int *tensor);
// f32, of the parts of all tensors, as those of the tensors.
yoke_tensor *yk_optim_total_all(const struct yoke_optim *, yoke_tensor *x);
// The same of all pieces, and over all who have parts of the tensors.
yoke_tensor *yk_optim_in_order_all(const struct yoke_optim *, yoke_tensor *each, const struct yk_optim_norm *);
// The sum of the map's one result over all members like this one, in their dtype; g: their group here, NULL where there is
// nothing of them.  By all who have cuts.
yoke_tensor *yk_optim_sum_pieces(const struct yk_optim_pass *, int like, struct yk_optim_group *g, const struct yk_optim_map *);
// Are members updated together?  Is this one of the group's kind?
bool yk_optim_together(const struct yk_optim_member *, const struct yk_optim_member *);
bool yk_optim_like(const struct yk_optim_group *, const struct yk_optim_member *);

// Rows' passes.
int yk_optim_lamb(const struct yk_optim_pass *, struct yk_optim_group *);
int yk_optim_adagrad(const struct yk_optim_pass *, struct yk_optim_group *);
int yk_optim_accelerated(struct yk_optim_pass *);

#endif
