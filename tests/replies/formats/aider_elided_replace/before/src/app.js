function run() {
  start();
  middle();
}
