package demo

import (
	"fmt"
	"sort"
	"strings"
)

// opening begins every reply in words, so that such a sentence is known when a
// later request brings it back.
const opening = "This is the demo model, and it only quotes what it is given: "

// nothing is said where no sentence fits.
const nothing = "Nothing in them fits your words."

// filler is what the replies of demo:words are made of.
const filler = "The demo model was asked for a long reply and has nothing more to say than this. "

// reply is what the router answers: a text or tool calls, the same in every
// choice.
type reply struct {
	text   string
	calls  []toolCall
	finish string
}

// callsOf returns the tool calls of a choice, whose ids are its own.
func (r reply) callsOf(choice int) []toolCall {
	calls := append([]toolCall(nil), r.calls...)
	for i := range calls {
		calls[i].ID = fmt.Sprintf("%s_%d_%d", calls[i].ID, choice, i)
	}
	return calls
}

// compose decides what to answer.
func (rt *Router) compose(c *chat) reply {
	if calls := c.callTools(); len(calls) > 0 {
		return reply{calls: calls, finish: "tool_calls"}
	}
	text := c.answer()
	switch c.format.Get("type").String() {
	case "json_object":
		text = string(marshal(map[string]string{"answer": text}))
	case "json_schema":
		text = fill(c.format.Get("json_schema.schema"), text)
	default:
		if c.words > 0 {
			text = fillerWords(c.words)
		}
	}
	if c.maxTokens == 0 || rt.count(text) <= c.maxTokens {
		return reply{text: text, finish: "stop"}
	}
	return reply{text: rt.cut(text, c.maxTokens), finish: "length"}
}

// cut returns the most of the text's first words that have no more tokens than
// limit.
func (rt *Router) cut(text string, limit int) string {
	cut := splitWords(text)
	n := sort.Search(len(cut), func(n int) bool {
		return rt.count(strings.Join(cut[:n+1], "")) > limit
	})
	return strings.Join(cut[:n], "")
}

// answer puts the reply in words: what was given, and what in it fits.
func (c *chat) answer() string {
	text := opening + c.inventory() + " "
	if results := c.toolResults(); results != "" {
		return text + results
	}
	if c.lastUser < 0 {
		return text + "None of them is a user's, so there is nothing to answer."
	}
	best, ok := fittest(c.question, c.candidates())
	if !ok {
		return text + nothing
	}
	return text + best.origin + ": “" + clip(best.text, maxSentence) + "”"
}

// isStock reports whether a sentence is one that an earlier reply is framed by.
func isStock(sentence string) bool {
	return sentence == nothing || strings.HasPrefix(sentence, opening)
}

// inventory says what the request holds. Instructions aren't part of the
// conversation, and so no earlier messages.
func (c *chat) inventory() string {
	last := c.lastUser
	if last < 0 {
		last = len(c.messages) - 1
	}
	earlier := 0
	for _, m := range c.messages[:last] {
		if m.role != "system" && m.role != "developer" {
			earlier++
		}
	}
	text := fmt.Sprintf("%s, %d of them earlier", plural(len(c.messages), "message"), earlier)
	if n := len(c.quotes); n > 0 {
		text += ", " + plural(n, "older one") + " quoted"
	}
	if n := len(c.chunks); n > 0 {
		text += ", and " + plural(n, "passage")
	}
	return text + "."
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func fillerWords(n int) string {
	words := strings.Fields(filler)
	out := make([]string, n)
	for i := range out {
		out[i] = words[i%len(words)]
	}
	return strings.Join(out, " ")
}
