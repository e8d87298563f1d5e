// SPDX-License-Identifier: Apache-2.0
// Optimizers: a table whose entries give each optimizer's update of one element as a formula, and
// the code that applies it to all tensors of a group in one launch per pass.
#ifndef YK_OPTIM_OPTIM_H
#define YK_OPTIM_OPTIM_H

#include <stdbool.h>

#include "ops/list.h"
#include "optim/options.h"
#include "optim/schedule.h"
#include "yoke-optim.h"

// ---- the table ----

// A fragment of an update's formula (kernel/formula.h).  Options are constants with their own
// names; g is the gradient, scaled and clipped; p and the states are assigned new values.
#define YK_OPTIM_BETWEEN "@" // stands for the text that the pass supplies, see yk_optim_map
struct yk_optim_part {
	const char *when;  // condition: "momentum": that option is not 0; "!momentum";
			   // "window_by=2"; NULL: always
	const char *list;  // a state that it adds, by its name in formulas, or NULL
	const char *state; // the same state's name in files
	const char *fill;  // the option that initializes it; NULL: 0
	const char *text;
	// shape of the state: the parameter's, or with 1 element in its last axis, or in the axis
	// before it
	enum { YK_OPTIM_WHOLE, YK_OPTIM_ROWS, YK_OPTIM_COLUMNS } shape;
};

// A number that depends on the step t = 1, 2, ..
struct yk_optim_number {
	const char *name;
	double (*at)(const double *option, int64_t t);
};

struct yk_optim_group;
struct yk_optim_pass;

struct yk_optim_kind {
	const char *name;
	const char *options; // "lr=0.001 momentum=0": its options with their defaults
	struct yk_optim_part part[8];
	struct yk_optim_number number[3];
	double (*slower)(const double *option, int64_t t); // divisor of the learning rate, or NULL
	// Is a parameter with so many axes updated as a matrix?  The answer is the option `matrix`,
	// by which fragments are chosen and groups are made.  Such optimizers need whole
	// parameters and have different states for different parameters.  NULL: all are alike.
	bool (*matrix)(const double *option, int rank);
	// Custom update of a group, if that is not a single map; custom update of all groups
	// together.
	int (*update)(const struct yk_optim_pass *, struct yk_optim_group *);
	int (*together)(struct yk_optim_pass *);
	struct yk_optim_scalar { // scalars on the device that belong to no parameter
		const char *name;
		double first;
	} scalar[4];
};
extern const struct yk_optim_kind yk_optim_kinds[];
extern const int yk_optim_kind_count;
const struct yk_optim_kind *yk_optim_kind_find(const char *name); // NULL: there is no such kind

// ---- settings ----

struct yk_optim_row {
	const char *name;
	enum { YK_OPTIM_INT, YK_OPTIM_REAL, YK_OPTIM_CHOICE } type;
	double min, max;
	const char *words; // each preceded by a blank
};
extern const struct yk_optim_row yk_optim_rows[YK_OPTIM_OPTION_COUNT];

// The value of an option that is not given and has no default number.
#define YK_OPTIM_NOT_GIVEN (-1e300)

// Does the kind have the option?
bool yk_optim_has(const struct yk_optim_kind *, int option);
// Sets all options to their defaults.
void yk_optim_defaults(const struct yk_optim_kind *, double *option);
// Applies "key=value key=value" to the options; on an error nothing is changed.
int yk_optim_settings(const struct yk_optim_kind *, const char *call, const char *text,
		      double *option);
struct yk_lr_schedule yk_optim_schedule(const double *option);
// Writes a value in the syntax of settings, or nothing if it is not given; returns the length, as
// snprintf.
size_t yk_optim_value_text(int option, double value, char *to, size_t room);

// ---- state ----

enum { YK_OPTIM_STATES = 4, YK_OPTIM_NUMBERS = 3, YK_OPTIM_SCALARS = 4 };

struct yk_optim_member { // a parameter
	char *name;
	yoke_tensor *p;
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK]; // its shape: p may have been freed with a module that was
				     // moved
	double option[YK_OPTIM_OPTION_COUNT];
	int states;
	yoke_tensor **state; // states of the fragments, then those of the window
};

// Sharded updates (Rajbhandari et al. 2020): the shards that this rank updates, and the callbacks
// that exchange results with the other ranks.
struct yk_optim_range {
	int64_t from, to; // interval of the flattened parameter
	int64_t all;      // the parameter's number of elements
};
struct yk_optim_sharding {
	// By member: this rank's shard, whose bounds are multiples of YK_OPTIM_INTERVAL or the end.
	// NULL: everything is updated here.
	const struct yk_optim_range *range;
	// Receives the new elements of each member's shard, flat, NULL for an empty one; assigns
	// them and those of the other ranks to the parameters.
	int (*renew)(void *arg, yoke_tensor *const *shard);
	bool held; // the added parameters are the shards themselves: nothing is exchanged
	// Sums an f64 [n] over all ranks with shards.
	yoke_tensor *(*sum)(void *arg, yoke_tensor *);
	// If members are shards of tensors, some of them replicated on all ranks that share the
	// tensors: by member, whether this rank counts it in sums over these tensors; and a
	// function that sums f32 or f64 [n] over these ranks. NULL: members are whole tensors.
	const bool *counts;
	yoke_tensor *(*total)(void *arg, yoke_tensor *);
	// If other ranks update some of the f32 tensors in the norm: all tensors, in order, and a
	// function that sums f64 [n] over all ranks that have some. NULL: this rank has all
	// tensors.
	const struct yk_optim_tensor *tensor;
	int tensors;
	yoke_tensor *(*join)(void *arg, yoke_tensor *);
	void *arg;
};
struct yk_optim_tensor {
	const char *name;
	int64_t elements; // of the member, on whichever rank it is
	int member;       // -1: on another rank
	bool counts;      // in sums over shards, like yk_optim_sharding.counts
};
// Elements of an interval.  Norms are summed over intervals of each tensor (the last one shorter),
// in order, so that ranks can sum the intervals of their shards.  CPU kernels add partial sums of
// the same size, so the bits are the same.
enum { YK_OPTIM_INTERVAL = 16384 };

// Members of one dtype with equal options, which are updated together.
struct yk_optim_group {
	const double *option;
	int dtype, n, *member;
	yoke_tensor **p, **g, **P;         // parameters; per step: gradients and preconditioners
	yoke_tensor **made;                // per step: updated shards, for sharding.renew
	int states, window;
	const char *list[YK_OPTIM_STATES]; // names of states in formulas
	yoke_tensor ***state;              // [states + window][n]
	yoke_tensor *lr, *number[YK_OPTIM_NUMBERS]; // host scalars of the last step, or NULL
	struct yk_optim_formula *formula;           // those compiled so far (map.c)
};

struct yoke_optim {
	const struct yk_optim_kind *kind;
	struct yoke_context *ctx;          // the parameters' context; NULL: there are none yet
	double option[YK_OPTIM_OPTION_COUNT];
	int n, groups;
	struct yk_optim_member *member;
	size_t member_cap;
	struct yk_optim_group *group;      // created by the first step
	int64_t t;                         // steps done
	struct yk_optim_sharding sharding;
	yoke_tensor **shard;               // per step, by member: for sharding.renew
	yoke_tensor *scalar[YK_OPTIM_SCALARS];
	// The gradients of a dtype, f32 and f64, or their intervals.  With check also the latch:
	// the squares of their norms, [n + 1] with the sum last, which keep their values from the
	// first step on that is not finite.
	struct yk_optim_norm {
		int n, *tensor; // index into sharding.tensor, or a member
		struct yk_optim_range *interval; // NULL: tensors are whole
		yoke_tensor **g, *latch;    // g: those on this rank
		yoke_tensor *after;         // f32 []: steps since the latched one, all without
					    // effect; NULL: not counted
	} norm[2];
	bool by_intervals; // norms are summed over intervals
	bool numbered; // the caller sets t (yk_optim_at), and stops after a step that was not
		       // finite
};

int yk_optim_parameters(const struct yoke_optim *); // number of parameters
// Makes the optimizer update one shard of each parameter, for which alone it keeps states and takes
// gradients: flat, of the shard's elements, NULL for an empty one.  Norms are summed over
// intervals, as on all ranks that share the parameters.  Call it before the states are made; the
// shards belong to the caller and must stay valid.
int yk_optim_shard(struct yoke_optim *, const struct yk_optim_sharding *);
void yk_optim_unshard(struct yoke_optim *); // frees the states of shards
// From gradients as the next step would take them, times scale: the square of each tensor's norm,
// f32 [n], those of f32 parameters summed over intervals; includes other ranks' tensors.
// yk_optim_tensors is n.
yoke_tensor *yk_optim_squares(struct yoke_optim *, yoke_tensor *const *g, yoke_tensor *scale);
int yk_optim_tensors(const struct yoke_optim *);
const char *yk_optim_tensor_name(const struct yoke_optim *, int i);
// Computes sums over whole tensors from sums over parts of tensors (members), f32 [n]; the list of
// members repeats cyclically.
yoke_tensor *yk_optim_total(const struct yoke_optim *, const int *member, int members, int n,
			    yoke_tensor *);
// Creates the states now instead of in the first step.
int yk_optim_states_ready(struct yoke_optim *);
// The variables of all states, in the order of files; name receives "m.NAME" or "optimizer.theta".
enum { YK_OPTIM_NAME = 512 };
int yk_optim_state_count(const struct yoke_optim *);
yoke_tensor *yk_optim_state_at(const struct yoke_optim *, int i, char *name);
// Sets the number of steps done, after the states were loaded.
void yk_optim_at(struct yoke_optim *, int64_t t);
void yk_optim_unnumber(struct yoke_optim *); // lets it count steps itself again
// The number of counted steps without effect because gradients were not finite.  Waits for pending
// evaluations.
int yk_optim_skipped(const struct yoke_optim *, int64_t *lost);
// With check: the parameter of the first gradient that was not finite; NULL: none.
const char *yk_optim_bad(struct yoke_optim *);

// With these options: the number of states that the fragments add, and of window states after them.
int yk_optim_part_states(const struct yk_optim_kind *, const double *option);
int yk_optim_window(const double *option);
bool yk_optim_same_states(const struct yk_optim_kind *, const double *a, const double *b);
// Do these options enable the fragment?
bool yk_optim_enables(const struct yk_optim_part *, const double *option);
int yk_optim_states_make(const struct yoke_optim *, struct yk_optim_member *);
void yk_optim_states_free(struct yk_optim_member *);
int yk_optim_scalars_make(struct yoke_optim *);
void yk_optim_scalars_free(struct yoke_optim *);
// Builds groups and norms from the current members.
int yk_optim_groups_make(struct yoke_optim *);
void yk_optim_groups_free(struct yoke_optim *);

// ---- a step ----

struct yk_optim_pass {
	struct yoke_optim *o;
	int64_t t;
	const struct yoke_step *given;
	// scalars, or YOKE_NONE; total: the square of the norm
	yoke_tensor *scale, *skip, *total, *latched;
	yoke_tensor *beta;                           // for accelerated: the extrapolation factor
};

// One launch: a formula over a group.  The operands are the lists, numbers and constants that it
// names.
struct yk_optim_map {
	const char *text;    // NULL: the kind's fragments
	const char *between; // the text for the fragment YK_OPTIM_BETWEEN
	const char *results; // NULL: p and the states; a name that is no list refers to `made`
	const char *list;    // an additional list's name, or NULL
	yoke_tensor *const *of;
	yoke_tensor **made;
	const char *number[2]; // names of additional numbers
	yoke_tensor *value[2];
	int slot;              // the window's state that formulas call w
};
void yk_optim_formulas_free(struct yk_optim_formula *);
int yk_optim_map(const struct yk_optim_pass *, struct yk_optim_group *,
		 const struct yk_optim_map *);
// Sums the map's only result over a group; each: as yk_list_sum; wide: in f64.
yoke_tensor *yk_optim_sum(const struct yk_optim_pass *, struct yk_optim_group *,
			  const struct yk_optim_map *, int each, bool wide);
// If parameters are sharded, passes on the updated shards; later passes of the step, and a loss
// evaluated next, then use the new parameters.
int yk_optim_renew(struct yoke_optim *);

// ---- intervals ----

// The member that tensor i of a norm belongs to; -1: a member of another rank.
int yk_optim_member_of(const struct yoke_optim *, int i);
// Is interval k in a shard of this rank?  How many are?
bool yk_optim_interval_here(const struct yoke_optim *, const struct yk_optim_norm *, int k);
int yk_optim_intervals_here(const struct yoke_optim *, const struct yk_optim_norm *);
// Combines a number per interval, f64 [n], from all ranks; `mine` has those of this rank, NULL if
// there are none.
yoke_tensor *yk_optim_intervals_join(const struct yoke_optim *, const struct yk_optim_norm *,
				     yoke_tensor *mine);
// Sums f64 [n] sequentially, like a list of n tensors of one element.  tensor: NULL, or the tensor
// of each number, of which only those that sharding.counts selects are added.
yoke_tensor *yk_optim_in_order(const struct yoke_optim *, yoke_tensor *x, int n, const int *tensor);
// Combines f32 numbers for the parts of all tensors into numbers for whole tensors.
yoke_tensor *yk_optim_total_all(const struct yoke_optim *, yoke_tensor *x);
// The same for numbers of all intervals, over all ranks that have parts of the tensors.
yoke_tensor *yk_optim_in_order_all(const struct yoke_optim *, yoke_tensor *each,
				   const struct yk_optim_norm *);
// Sums the map's only result over all members like this one, in their dtype, on all ranks with
// shards; g: the members' group here, NULL if this rank has none of them.
yoke_tensor *yk_optim_sum_intervals(const struct yk_optim_pass *, int like,
				    struct yk_optim_group *g, const struct yk_optim_map *);
// Do both members belong to one group? Does the member belong to the group?
bool yk_optim_together(const struct yk_optim_member *, const struct yk_optim_member *);
bool yk_optim_like(const struct yk_optim_group *, const struct yk_optim_member *);

// Is the step not skipped, a bool []?  NULL: it never is.
yoke_tensor *yk_optim_not_skipped(const struct yk_optim_pass *);

// Custom updates of the table's entries.
int yk_optim_lamb(const struct yk_optim_pass *, struct yk_optim_group *);
int yk_optim_adagrad(const struct yk_optim_pass *, struct yk_optim_group *);
int yk_optim_accelerated(struct yk_optim_pass *);
int yk_optim_adafactor(const struct yk_optim_pass *, struct yk_optim_group *);
int yk_optim_muon(const struct yk_optim_pass *, struct yk_optim_group *);

#endif
