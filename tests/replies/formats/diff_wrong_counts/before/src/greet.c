#include <stdio.h>
int main(void) {
  puts("a");
  return 0;
}
