package memory

import "github.com/backstory-proxy/backstory/store"

// alignment is where what a client resent stands in the session.
type alignment struct {
	line  int // of the session: the first one that the client carries its version of
	first int // the client's first message that the session holds
	known int // messages of the client up to the last one that the session holds
}

// maxAligned bounds the comparison of what was edited: it is quadratic.
const maxAligned = 512

// align finds the longest common subsequence of the session's messages and
// those that the client resent, the latest one where there are several. In the
// usual case the client resends the end of the session as it is, and one pass
// shows it.
func align(log []line, said []Said) (alignment, bool) {
	// The same end is a part of it in any case.
	i, j := len(log), len(said)
	for i > 0 && j > 0 && log[i-1].digest == said[j-1].Digest {
		i, j = i-1, j-1
	}
	firstLine, firstSaid, known := i, j, len(said)
	skippedLog, skippedSaid := max(0, i-maxAligned), max(0, j-maxAligned)
	c, found := longestCommon(log[skippedLog:i], said[skippedSaid:j])
	if found {
		firstLine, firstSaid = skippedLog+c.firstLine, skippedSaid+c.firstSaid
	}
	if j == len(said) { // another end
		known = 0
		if found {
			known = skippedSaid + c.lastSaid + 1
		}
	}
	// What is too long to be compared may have the same beginning.
	if skippedLog+skippedSaid > 0 && firstSaid > 0 {
		if same := sameBeginning(log[:i], said[:j]); same > 0 {
			firstLine, firstSaid, known = 0, 0, max(known, same)
		}
	}
	if known == 0 {
		return alignment{}, false
	}
	return alignment{replaced(log, said, firstLine, firstSaid), firstSaid, known}, true
}

// sameBeginning is the number of messages with which both begin.
func sameBeginning(log []line, said []Said) (n int) {
	for n < len(log) && n < len(said) && log[n].digest == said[n].Digest {
		n++
	}
	return n
}

// replaced goes back from the first message that is the same on both sides,
// over those ahead of it that the client carries in another version: edited
// ones, told by their having the same role at the same place.
func replaced(log []line, said []Said, i, j int) int {
	for i > 0 && j > 0 && log[i-1].role == said[j-1].Role {
		i, j = i-1, j-1
	}
	return i
}

type common struct{ firstLine, firstSaid, lastSaid int }

func longestCommon(log []line, said []Said) (c common, found bool) {
	if len(log) == 0 || len(said) == 0 {
		return c, false
	}
	// length[i*width+j] is that of the common subsequence of said[:i] and log[:j].
	width := len(log) + 1
	length := make([]uint16, (len(said)+1)*width)
	for i := range said {
		above, row := length[i*width:(i+1)*width], length[(i+1)*width:(i+2)*width]
		for j := range log {
			if said[i].Digest == log[j].digest {
				row[j+1] = above[j] + 1
			} else {
				row[j+1] = max(above[j+1], row[j])
			}
		}
	}
	for i, j := len(said), len(log); i > 0 && j > 0; {
		switch {
		case said[i-1].Digest == log[j-1].digest:
			if !found {
				c.lastSaid = i - 1
			}
			c.firstLine, c.firstSaid, found = j-1, i-1, true
			i, j = i-1, j-1
		case length[(i-1)*width+j] >= length[i*width+j-1]:
			i--
		default:
			j--
		}
	}
	return c, found
}

// Remainder is the index of the first message of a conversation, from the
// given one on, that the exchanges don't hold: what is left to save once they
// have been saved by somebody else. Only what they hold from the first one on
// counts: a message further on that happens to be the same proves nothing.
func Remainder(exchanges []store.Exchange, said []Said, from int) int {
	carried := carriedUntil(said)
	for i := range exchanges {
		if exchanges[i].Hidden {
			continue
		}
		for j := range exchanges[i].Messages {
			if from < carried && exchanges[i].Messages[j].Digest == said[from].Digest {
				from++
			}
		}
	}
	return from
}
