class Service {
  start() {
    this.run(2);
  }
  stop() {
    this.halt(true);
  }
}
