#ifndef OPS_H
#define OPS_H

#define op_add(a, b) ((a) + (b))
#define op_sub(a, b) ((a) - (b))
#define op_mul(a, b) ((a) * (b))
#define op_div(a, b) ((a) / (b))
#define op_mod(a, b) \
	((a) % (b))
#define op_and(a, b) ((a) & (b))
#define op_or(a, b)  ((a) | (b))
#define op_xor(a, b) ((a) ^ (b))
#define op_shl(a, b) ((a) << (b))
#define op_shr(a, b) ((a) >> (b))
#define op_neg(a)    (-(a))

#endif
