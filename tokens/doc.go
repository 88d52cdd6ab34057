// Package tokens counts the tokens that a text costs a language model, exactly
// and fast enough to be done on every request.
//
// It implements OpenAI's two current byte pair encodings, o200k_base and
// cl100k_base, as a counter: text goes in, a number comes out, and no token id
// is ever materialised. Text is cut into pieces (words, numbers, punctuation,
// white space) by a hand-written scanner in place of the published regular
// expressions; a piece that is a token counts one; any other piece is merged
// byte pair by byte pair in the order of the vocabulary's ranks. The
// vocabularies are compiled in and loaded on first use.
//
//	n := tokens.O200K().Count("Hello, world!")     // one encoding
//	m := tokens.ForModel("anthropic/claude-opus-4-5")
//	n = m.Count("Hello, world!")                   // raised by an honest margin
//	head, n := tokens.O200K().Cut(document, 1000)  // what fits a budget
//
// # Guarantees
//
// Counts equal those of github.com/pkoukk/tiktoken-go's EncodeOrdinary, which
// the tests use as their oracle: special tokens such as <|endoftext|> are
// counted as the ordinary text that they are in a message, and each byte of
// invalid UTF-8 counts as U+FFFD, as it does once a JSON encoder has seen it.
// There is one deliberate difference: the contraction 's also matches 'ſ
// (U+017F), since the (?i:'s) of OpenAI's own engine, Rust's, folds case by
// Unicode rules; the oracle's doesn't.
//
// Counting is linear for any input; no text is slow. (Engines that search for the
// best pair by scanning take seconds for 64 KB of "\n ".) Where a text is so long
// that the number can't matter, it is no longer exact: see Tally.
//
// Counting doesn't allocate, except for scratch space of 28 bytes per byte of
// the longest piece above 128 bytes and up to 4 KB, which is pooled. All functions
// are safe for concurrent use.
//
// # Where it differs from Python's tiktoken
//
// tiktoken has since rewritten cl100k_base's pattern (openai/tiktoken#234 and
// after); its \s++$ makes white space at the very end of a text one piece, even
// where it holds a newline. This package, like the oracle, keeps the pattern as
// first published: a count can differ by one or two for such a text.
// o200k_base is not concerned.
package tokens
