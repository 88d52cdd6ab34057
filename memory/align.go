package memory

// alignment says where the messages that a client resent stand in the session.
type alignment struct {
	stored int // index in the log of the first message that the client has its own version of
	resent int // index in the conversation of the first message that the log holds
	known  int // number of messages in the conversation up to the last one that the log holds
}

// maxAligned is how many messages of each side are compared: the comparison is
// quadratic.
const maxAligned = 512

// align finds the longest common subsequence of the session's messages and those that
// the client resent. Where there are several, it takes the latest. A client usually
// resends the end of the session unchanged, and one pass shows it.
func align(log []storedMessage, conv []RequestMessage) (alignment, bool) {
	// A common suffix always belongs to a longest common subsequence.
	i, j := len(log), len(conv)
	for i > 0 && j > 0 && log[i-1].digest == conv[j-1].Digest {
		i, j = i-1, j-1
	}
	firstStored, firstResent, known := i, j, len(conv)
	skippedLog, skippedConv := max(0, i-maxAligned), max(0, j-maxAligned)
	c, found := longestCommon(log[skippedLog:i], conv[skippedConv:j])
	if found {
		firstStored, firstResent = skippedLog+c.firstStored, skippedConv+c.firstResent
	}
	if j == len(conv) { // the ends differ
		known = 0
		if found {
			known = skippedConv + c.lastResent + 1
		}
	}
	// Messages beyond maxAligned may still share a prefix.
	if skippedLog+skippedConv > 0 && firstResent > 0 {
		if same := commonPrefix(log[:i], conv[:j]); same > 0 {
			firstStored, firstResent, known = 0, 0, max(known, same)
		}
	}
	if known == 0 {
		return alignment{}, false
	}
	return alignment{skipEdited(log, conv, firstStored, firstResent), firstResent, known}, true
}

// commonPrefix returns how many messages both begin with.
func commonPrefix(log []storedMessage, conv []RequestMessage) (n int) {
	for n < len(log) && n < len(conv) && log[n].digest == conv[n].Digest {
		n++
	}
	return n
}

// skipEdited returns the index in log of the first message that the client has its
// own version of. It starts at i and j, the first messages that are equal, and steps
// back while the roles agree: a message with the same role in the same place was
// edited.
func skipEdited(log []storedMessage, conv []RequestMessage, i, j int) int {
	for i > 0 && j > 0 && log[i-1].role == conv[j-1].Role {
		i, j = i-1, j-1
	}
	return i
}

type commonSubsequence struct{ firstStored, firstResent, lastResent int }

func longestCommon(log []storedMessage, conv []RequestMessage) (c commonSubsequence, found bool) {
	if len(log) == 0 || len(conv) == 0 {
		return c, false
	}
	// length[i*width+j] is the length for conv[:i] and log[:j].
	width := len(log) + 1
	length := make([]uint16, (len(conv)+1)*width)
	for i := range conv {
		above, row := length[i*width:(i+1)*width], length[(i+1)*width:(i+2)*width]
		for j := range log {
			if conv[i].Digest == log[j].digest {
				row[j+1] = above[j] + 1
			} else {
				row[j+1] = max(above[j+1], row[j])
			}
		}
	}
	for i, j := len(conv), len(log); i > 0 && j > 0; {
		switch {
		case conv[i-1].Digest == log[j-1].digest:
			if !found {
				c.lastResent = i - 1
			}
			c.firstStored, c.firstResent, found = j-1, i-1, true
			i, j = i-1, j-1
		case length[(i-1)*width+j] >= length[i*width+j-1]:
			i--
		default:
			j--
		}
	}
	return c, found
}
