// SPDX-License-Identifier: Apache-2.0
// Looks up node types by name, and registers those of applications.
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "base/sized.h"
#include "fit/node.h"

enum { ADDED = 64 };
static struct yoke_node_type *added[ADDED];
static int added_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct yoke_node_type *find(const char *name)
{
	for (int i = 0; i < yk_node_type_count; i++)
		if (!strcmp(yk_node_types[i].name, name))
			return &yk_node_types[i];
	for (int i = 0; i < added_count; i++)
		if (!strcmp(added[i]->name, name))
			return added[i];
	return NULL;
}

const struct yoke_node_type *yk_node_type(const char *name, const char *what)
{
	const char *names[ADDED + 16];
	char hint[600];
	int n = 0;
	pthread_mutex_lock(&lock);
	const struct yoke_node_type *t = find(name);
	for (int i = 0; i < yk_node_type_count; i++)
		names[n++] = yk_node_types[i].name;
	for (int i = 0; i < added_count; i++)
		names[n++] = added[i]->name;
	if (!t)
		yk_fail(YOKE_EINVAL, "%s: unknown node type '%s'; %s", what, name,
			yk_hint(name, names, n, hint, sizeof hint));
	pthread_mutex_unlock(&lock);
	return t;
}

int yoke_node_register(const struct yoke_node_type *type)
{
	struct yoke_node_type def = { .size = sizeof def };
	const int err_size =
		yk_sized_read(&def, sizeof def, type, "node_register", "yoke_node_type");
	if (err_size)
		return err_size;
	if (!def.name || !*def.name || !def.channels || !def.forward || def.keys < 0 ||
	    def.keys > YOKE_NODE_KEYS || def.states < 0 || def.states > YOKE_NODE_STATES ||
	    (def.states && (!def.dims || !def.fit)))
		return yk_fail(
			YOKE_EINVAL,
			"node_register: a type needs a name, channels and forward, and, if it has states, dims and fit; at most "
			"%d keys and %d states",
			YOKE_NODE_KEYS, YOKE_NODE_STATES);
	struct yoke_node_type *copy = malloc(sizeof *copy);
	if (!copy)
		return yk_fail(YOKE_ENOMEM, "node_register: no memory for a type");
	*copy = def;
	pthread_mutex_lock(&lock);
	int err = find(def.name) ?
			  yk_fail(YOKE_EINVAL, "node_register: a node type '%s' exists already",
				  def.name) :
		  added_count == ADDED ?
			  yk_fail(YOKE_ENOMEM, "node_register: more than %d types were added",
				  ADDED) :
			  0;
	if (!err)
		added[added_count++] = copy;
	pthread_mutex_unlock(&lock);
	if (err)
		free(copy);
	return err;
}
