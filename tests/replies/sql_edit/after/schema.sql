CREATE TABLE user_account (
  id INTEGER PRIMARY KEY,
  full_name TEXT NOT NULL,
  e_mail TEXT
);
