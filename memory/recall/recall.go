// Package recall finds, among the earlier messages of one session, those that
// a user message is about. It is pure: texts go in by Add, places come out of
// Search; whoever calls fetches the texts from the store. An Index keeps no
// texts, only which terms occur where.
//
// Long messages are cut into pieces of about 900 bytes at paragraphs, lines or
// sentences, and a Hit names the bytes of one piece. Adjacent pieces of one
// message join without a gap.
package recall

import "time"

// Message is one message of the session.
type Message struct {
	Seq    int64     // the exchange it belongs to
	N      int       // its position in the exchange
	Role   string    // "user", "assistant", …
	Name   string    // the speaker's name, if one is known
	Text   string    // what it says
	Time   time.Time // when it was said; zero where that isn't known
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
	Before int64     // only exchanges with a smaller Seq; 0: all
	Budget int       // tokens to fill; 0: Limit decides
	Limit  int       // most hits; 0: no limit
	// Group is what one more sitting costs, in tokens: the date line above
	// its first message.
	Group int
	// Near is a ranking by other means (vectors), best first, to be fused by
	// rank.
	Near []Ref
}

// Hit is a message, or a piece of one, that is worth quoting.
type Hit struct {
	Ref
	From, To int     // bytes of the text; all of it where it is short
	Score    float64 // 0: a filler, here for being recent only
	Tokens   int     // what quoting it takes, estimated where it is a piece
}
