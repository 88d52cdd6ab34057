package tokens_test

import (
	"crypto/sha256"
	"fmt"

	"github.com/backstory-proxy/backstory/tokens"
)

func ExampleEncoding_Count() {
	fmt.Println(tokens.O200K().Count("The quick brown fox doesn't jump."))
	fmt.Println(tokens.CL100K().Count("敏捷的棕色狐狸"), tokens.O200K().Count("敏捷的棕色狐狸"))
	// Output:
	// 7
	// 14 7
}

func ExampleForModel() {
	const text = "How many tokens is this?"
	for _, name := range []string{"openai/gpt-4o", "anthropic/claude-3.5-sonnet"} {
		m := tokens.ForModel(name)
		fmt.Println(name, m.Encoding.Name(), m.Margin, m.Count(text))
	}
	// Output:
	// openai/gpt-4o o200k_base 1 6
	// anthropic/claude-3.5-sonnet o200k_base 1.25 8
}

func ExampleEncoding_Cut() {
	prefix, count := tokens.O200K().Cut("One two three four five", 3)
	fmt.Printf("%q has %d tokens\n", prefix, count)
	// Output: "One two three" has 3 tokens
}

func ExampleCache() {
	cache := tokens.NewCache(10_000)
	message := []byte(`{"role":"user","content":"Hello!"}`)
	sum := sha256.Sum256(message)
	for range 2 {
		n := cache.Count(tokens.O200K().NewTally(), [16]byte(sum[:]), func() string {
			fmt.Println("counting")
			return "Hello!" // decoded only now
		})
		fmt.Println(n)
	}
	// Output:
	// counting
	// 2
	// 2
}
