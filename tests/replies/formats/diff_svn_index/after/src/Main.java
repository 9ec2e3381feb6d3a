class Main {
  int b;
}
