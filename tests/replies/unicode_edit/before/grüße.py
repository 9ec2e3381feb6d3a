GRUESSE = {"de": "Grüße, Jürgen", "ja": "こんにちは"}
COUNT = len(GRUESSE)
