package embed

import "unicode/utf8"

// input is a text on its way to the router.
type input struct {
	position int // among the texts of Embed
	text     string
	tokens   int
}

// maxTokenBytes: text beyond so many bytes per allowed token isn't looked at.
// English has about 4 bytes to a token; what is longer is white space or one
// character repeated.
const maxTokenBytes = 8

// input counts a text and cuts it where it is too long for the model.
func (r *Router) input(position int, text string) input {
	limit := r.opts.InputTokens
	text = prefix(text, limit*maxTokenBytes)
	n := r.opts.Count(text)
	for n > limit {
		// In proportion, and a little more, so that few rounds are needed.
		text = prefix(text, len(text)*limit/n-1)
		n = r.opts.Count(text)
	}
	return input{position: position, text: text, tokens: n}
}

// prefix cuts s to at most n bytes without splitting a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)]
}

// batches divides the inputs, in order, into requests within the limits.
func (r *Router) batches(inputs []input) [][]input {
	var batches [][]input
	start, tokens := 0, 0
	for i, in := range inputs {
		if i > start && (i-start == batchInputs || tokens+in.tokens > r.opts.BatchTokens) {
			batches = append(batches, inputs[start:i])
			start, tokens = i, 0
		}
		tokens += in.tokens
	}
	if start < len(inputs) {
		batches = append(batches, inputs[start:])
	}
	return batches
}
