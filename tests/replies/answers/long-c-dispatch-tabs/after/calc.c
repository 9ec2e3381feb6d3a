#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ops.h"

struct vm {
	long stack[64];
	int	top;
};

typedef int (*cmd_fn)(struct vm *vm, const char *arg);

static int pop2(struct vm *vm, long *a, long *b)
{
	if (vm->top < 2)
		return -EINVAL;
	*b = vm->stack[--vm->top];
	*a = vm->stack[--vm->top];
	return 0;
}

static int cmd_add(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* add is done by op_add() in ops.h */
	vm->stack[vm->top++] = op_add(a, b);
	return 0;
}

static int cmd_sub(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* sub is done by op_sub() in ops.h */
	vm->stack[vm->top++] = op_sub(a, b);
	return 0;
}

static int mul_overflows(long a, long b)
{
	if (a == 0 || b == 0)
		return 0;
	if (a > 0)
		return b > 0 ? a > LONG_MAX / b : b < LONG_MIN / a;
	return b > 0 ? a < LONG_MIN / b : b < LONG_MAX / a;
}

static int cmd_mul(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	if (mul_overflows(a, b)) {
		vm->top += 2;
		return -ERANGE;
	}
	/* mul is done by op_mul() in ops.h */
	vm->stack[vm->top++] = op_mul(a, b);
	return 0;
}

static int cmd_div(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	if (b == 0) {
		vm->top += 2;
		return -EDOM;
	}
	if (a == LONG_MIN && b == -1) {
		vm->top += 2;
		return -ERANGE;
	}
	/* div is done by op_div() in ops.h */
	vm->stack[vm->top++] = op_div(a, b);
	return 0;
}

static int cmd_mod(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* mod is done by op_mod() in ops.h */
	vm->stack[vm->top++] = op_mod(a, b);
	return 0;
}

static int cmd_and(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* and is done by op_and() in ops.h */
	vm->stack[vm->top++] = op_and(a, b);
	return 0;
}

static int cmd_or(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* or is done by op_or() in ops.h */
	vm->stack[vm->top++] = op_or(a, b);
	return 0;
}

static int cmd_xor(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* xor is done by op_xor() in ops.h */
	vm->stack[vm->top++] = op_xor(a, b);
	return 0;
}

static int cmd_shl(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* shl is done by op_shl() in ops.h */
	vm->stack[vm->top++] = op_shl(a, b);
	return 0;
}

static int cmd_shr(struct vm *vm, const char *arg)
{
	long a, b;
	int rc = pop2(vm, &a, &b);

	(void)arg;
	if (rc)
		return rc;
	/* shr is done by op_shr() in ops.h */
	vm->stack[vm->top++] = op_shr(a, b);
	return 0;
}

static int cmd_neg(struct vm *vm, const char *arg)
{
	(void)arg;
	if (vm->top < 1)
		return -EINVAL;
	if (vm->stack[vm->top - 1] == LONG_MIN)
		return -ERANGE;
	/* neg is done by op_neg() in ops.h */
	vm->stack[vm->top - 1] = op_neg(vm->stack[vm->top - 1]);
	return 0;
}

static const struct {
	const char *name;
	cmd_fn fn;
} table[] = {
	{ "add",	cmd_add },
	{ "sub",	cmd_sub },
	{ "mul",	cmd_mul },
	{ "div",	cmd_div },
	{ "mod",	cmd_mod },
	{ "and",	cmd_and },
	{ "or",	cmd_or },
	{ "xor",	cmd_xor },
	{ "shl",	cmd_shl },
	{ "shr",	cmd_shr },
	{ "neg",	cmd_neg },
	{ NULL, NULL }
};

int run(struct vm *vm, const char *name)
{
	for (int i = 0; table[i].name; i++)
		if (!strcmp(table[i].name, name))
			return table[i].fn(vm, NULL);
	return -ENOENT;
}
