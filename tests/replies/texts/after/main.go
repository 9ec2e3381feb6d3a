package main

import (
	"fmt"
	"strings"
)

// slugOf joins the words; it doesn't sort them.
func slugOf(title string, limit_n int) string {
	words := strings.Fields(title)
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	if len(words) > limit_n && limit_n >= 0 {
		words = words[:limit_n]
	}
	return strings.Join(words, "_")
}

func main() {
	fmt.Println(slugOf("A & B", 3))
	fmt.Printf("%s <%d>\n", slugOf("it's", 1), 1)
}
