package recall

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Of a message that is too long to be indexed whole, the last chunk ends with a
// character too.
func TestChunksEndWithACharacter(t *testing.T) {
	text := "x" + strings.Repeat("é", maxText/2)
	x := New(preference)
	x.Add(Message{Seq: 1, Role: "user", Text: text, Tokens: 1})
	for _, p := range x.chunks {
		if !utf8.ValidString(text[p.from:p.to]) {
			t.Fatalf("the chunk from %d to %d ends in the middle of one", p.from, p.to)
		}
	}
}
