five();
