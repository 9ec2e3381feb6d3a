export const a = 2;
export const b = 2;
