// Package recall finds the earlier messages of a session that a user message is about.
// It does no I/O: Add takes texts, Search returns where to find them, and the caller
// fetches the texts from the store. An Index keeps no texts, only which terms occur
// where.
//
// The score is BM25 over normalised, stemmed terms (package knowledge/terms), with
// these additions:
//
//   - A message also counts its neighbours' terms in part: an answer seldom repeats the
//     words of its question.
//   - It also counts the score of its segment, a part of the session without a long
//     pause.
//   - The speaker's name is indexed with the message, and messages of the only speaker
//     that the query names come first.
//   - Dates in the query raise the messages of those days.
//   - The terms that the best messages share are searched for, too.
//   - Messages that say the same in other words count too, by the vectors of English
//     words in package wordvec.
//
// None of this requires names, times or English: where these are missing, they add
// nothing.
//
// Long messages are cut into chunks of up to 1,200 bytes, at paragraphs, lines,
// sentences or words. A Hit names the bytes of one chunk. Adjacent chunks of a message
// join without a gap.
package recall

import "time"

// Message is one message of the session.
type Message struct {
	Seq    int64     // the exchange it belongs to
	N      int       // its position in the exchange
	Role   string    // "user", "assistant", …
	Name   string    // the speaker's name, if known
	Text   string    // its text
	Time   time.Time // when it was said, in the zone that its day is read in; zero: unknown
	Tokens int       // what quoting all of it takes
}

// Ref names a message.
type Ref struct {
	Seq int64
	N   int
}

// Query is a search.
type Query struct {
	Text   string
	Now    time.Time // what "yesterday" is counted from; zero: the newest message's time
	Before Ref       // only messages ahead of this one; zero: all
	// Semantic is a ranking by semantic similarity, best first. SemanticWeight is
	// the weight of its first place, relative to the best lexical match.
	Semantic       []Ref
	SemanticWeight float64
}

// NoDay is the Day of a message whose time isn't known.
const NoDay = noTime

// Hit is a message, or a chunk of a long one, that may be worth quoting.
type Hit struct {
	Ref
	From, To int     // bytes of the text; all of it if it is short
	Day      int64   // when it was said, in days since 1970; NoDay: unknown
	Pinned   bool    // it holds a pinned instruction
	Score    float64 // how well it matches, compared with others of its Ranking; 0: not at all
	Tokens   int     // what quoting it takes; an estimate for a chunk of a long message
}
