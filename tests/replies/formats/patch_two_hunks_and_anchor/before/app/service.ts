class Service {
  start() {
    this.run(1);
  }
  stop() {
    this.halt();
  }
}
