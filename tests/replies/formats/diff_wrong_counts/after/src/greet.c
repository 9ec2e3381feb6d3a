#include <stdio.h>
int main(void) {
  puts("b");
  puts("c");
  return 0;
}
