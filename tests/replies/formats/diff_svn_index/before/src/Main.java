class Main {
  int a;
}
