// Package recall finds, among the earlier messages of one session, those that
// a user message is about. It is pure: texts go in by Add, places come out of
// Search; whoever calls fetches the texts from the store. An Index keeps no
// texts, only which terms occur where.
//
// The score is BM25 over normalised terms (knowledge/terms, stemmed), where
//
//   - a message counts what its neighbours say in part: an answer seldom
//     repeats the words of its question;
//   - so does it the sitting that it stands in, found by pauses;
//   - who says it is indexed with it, and messages of the one speaker that
//     the query names come first;
//   - dates in the query raise the messages of those days;
//   - the terms that the best messages share are searched for as well;
//   - what says the same in other words counts too, by the vectors of English
//     words in package wordvec.
//
// Nothing of it needs names, times or English; what is missing brings nothing.
//
// Long messages are cut into pieces of up to 1,200 bytes at paragraphs, lines,
// sentences or words, and a Hit names the bytes of one piece. Pieces of one
// message that follow each other join without a gap.
package recall

import "time"

// Message is one message of the session.
type Message struct {
	Seq    int64     // the exchange it belongs to
	N      int       // its position in the exchange
	Role   string    // "user", "assistant", …
	Name   string    // the speaker's name, if one is known
	Text   string    // what it says
	Time   time.Time // when it was said, in the zone to read dates in; zero: unknown
	Tokens int       // what quoting all of it takes
}

// Ref names a message.
type Ref struct {
	Seq int64
	N   int
}

// Query is what to look for.
type Query struct {
	Text   string
	Now    time.Time // what "yesterday" is counted from; zero: the newest message's time
	Before Ref       // only messages ahead of this one; zero: all
	// Near is a ranking by other means, such as vectors, best first, and
	// NearWeight what its first place is worth beside the best lexical match:
	// 1 is as much.
	Near       []Ref
	NearWeight float64
}

// NoDay is the Day of a message whose time isn't known.
const NoDay = noTime

// Hit is a message, or a piece of one, that may be worth quoting.
type Hit struct {
	Ref
	From, To int     // bytes of the text; all of it where it is short
	Day      int64   // when it was said, in days since 1970; NoDay: unknown
	Pinned   bool    // it was added as pinned
	Score    float64 // 1 for the best match; 0 for none
	Tokens   int     // what quoting it takes, estimated where it is a piece
}
