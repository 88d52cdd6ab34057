package tokens

import "unicode/utf8"

// Cut returns the longest prefix of text that ends between two characters and
// has at most n tokens, and its count. It reads no further than it must: its
// cost is that of counting the prefix, not the text.
//
// It is the longest indeed, but for one case: where the budget runs out inside
// a piece of more than 256 bytes (a word that no dictionary holds, such as
// base64, or Chinese without punctuation), the cut falls between two of the
// piece's tokens, and a few more characters might have fitted.
func (e *Encoding) Cut(text string, n int) (prefix string, count int) {
	var (
		t     = e.NewTally()
		s     = newScanner(e.split, text)
		w     workspace
		total int
		// A run of white space without a newline is several pieces before a
		// word, but one piece at the end of a text; so a cut in or behind it
		// must count it again, from its start.
		run      = -1
		runTotal int
	)
	for s.next() {
		c := t.piece(&s, &w)
		if total+c > n {
			return e.cutPiece(&s, max(n, 0), total, run, runTotal)
		}
		switch {
		case !s.blank || text[s.end-1] == '\n' || text[s.end-1] == '\r':
			run = -1
		case run < 0:
			run, runTotal = s.start, total
		}
		total += c
	}
	return text, total
}

// exactCut is the length of a piece up to which all places for a cut are tried.
const exactCut = 256

// cutPiece cuts in the scanner's current piece, with which the text, of total
// tokens before it, exceeds n. White space that must be counted again starts
// at run, unless that is negative, with runTotal tokens before it.
func (e *Encoding) cutPiece(s *scanner, n, total, run, runTotal int) (string, int) {
	text, start := s.text, s.start
	_, first := s.at(start)
	// count counts text[:end], for an end at or behind start.
	count := func(end int) int {
		if c, _ := s.at(start); run >= 0 && (end == start || end == start+first && c&space != 0) {
			return runTotal + e.Count(text[run:end])
		}
		return total + e.Count(text[start:end])
	}

	// With one more character, a white space piece can become cheaper.
	_, more := s.at(s.end)
	end := s.end + more
	step := 0
	if s.end-start > exactCut {
		end, step = start+e.tokensEnd(text[start:s.end], n-total), 1
	}
	for end > start {
		if c := count(end); c <= n {
			return text[:end], c
		}
		// Cut short, a piece can split into others than before; from long
		// ones, ever more is dropped.
		end = max(start, backward(text, end, step))
		step *= 2
	}
	if run < 0 {
		return text[:start], total
	}
	for step = 1; end > run; step *= 2 {
		if c := runTotal + e.Count(text[run:end]); c <= n {
			return text[:end], c
		}
		end = max(run, backward(text, end, step))
	}
	return text[:run], runTotal
}

// backward goes back from i, which is between two characters, by at least one
// character and at least step bytes.
func backward(text string, i, step int) int {
	for stop := i - max(step, 1); i > max(stop, 0); {
		_, w := utf8.DecodeLastRuneInString(text[:i])
		i -= w
	}
	return i
}

// tokensEnd returns where the first n tokens of a long piece end, or a little
// before, if that is inside a character.
func (e *Encoding) tokensEnd(piece string, n int) int {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	end := 0
	for n > 0 && end < len(piece) {
		part := piece[end:partEnd(piece, end, len(piece))]
		taken, size := e.partTokensEnd(sc, part, n)
		if end += size; size < len(part) {
			break
		}
		n -= taken
	}
	return end
}

// partTokensEnd is tokensEnd for a part of the piece. taken is how many tokens end
// there.
func (e *Encoding) partTokensEnd(sc *scratch, part string, n int) (taken, end int) {
	whole := part
	if !utf8.ValidString(part) {
		whole = string([]rune(part)) // U+FFFD for each invalid byte
	}
	e.vocab.mergeLong(sc, whole)
	at := 0
	for taken < n && at < len(whole) {
		at = int(sc.next[at])
		taken++
	}
	// Back to the original, in which an invalid byte isn't three.
	for width := 0; end < len(part); {
		r, w := utf8.DecodeRuneInString(part[end:])
		if width += utf8.RuneLen(r); width > at {
			break
		}
		end += w
	}
	return taken, end
}
