export const a = 1;
console.log("debug");
export const b = 2;
