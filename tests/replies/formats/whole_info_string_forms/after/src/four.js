four();
