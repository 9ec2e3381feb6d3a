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
	return strings.Join(words, "-")
}

func main() {
	fmt.Println(slugOf("A & B", 3))
}
