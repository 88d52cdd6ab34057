package tokens

import "unicode/utf8"

// splitter names a split pattern.
type splitter uint8

const (
	splitO200K splitter = iota
	splitCL100K
)

// scanner cuts a text into pieces as an encoding's split pattern does: at each
// position the pattern's alternatives are tried in order, and each is matched
// as a backtracking engine would. Every character belongs to exactly one
// piece, and where a piece ends doesn't depend on the text before it.
//
// A match is one pass ahead, plus what backtracking gives back; that is
// counted in wasted, and never exceeds the text's length: what is given back
// becomes a piece of its own, save for its last character.
type scanner struct {
	text       string
	start, end int // the current piece
	split      splitter
	valid      bool // the text is valid UTF-8
	blank      bool // the current piece is white space
	wasted     int  // bytes looked at and given back, for the tests
	classes    *classTable
}

func newScanner(split splitter, text string) scanner {
	return scanner{text: text, split: split, valid: utf8.ValidString(text), classes: classes()}
}

// next moves on to the next piece; it reports false at the end of the text.
func (s *scanner) next() bool {
	if s.end >= len(s.text) {
		return false
	}
	s.start = s.end
	s.blank = false
	if s.split == splitO200K {
		s.end = s.o200k(s.start)
	} else {
		s.end = s.cl100k(s.start)
	}
	return true
}

// at returns the class and the width of the character at i, and no class at
// the end of the text.
func (s *scanner) at(i int) (class, int) {
	if i >= len(s.text) {
		return 0, 0
	}
	if b := s.text[i]; b < utf8.RuneSelf {
		return s.classes.ascii[b], 1
	}
	r, w := utf8.DecodeRuneInString(s.text[i:])
	return s.classes.of(r), w
}

// run returns where the run of characters of class c that starts at i ends.
func (s *scanner) run(i int, c class) int {
	for i < len(s.text) {
		if b := s.text[i]; b < utf8.RuneSelf {
			if s.classes.ascii[b]&c == 0 {
				return i
			}
			i++
			continue
		}
		r, w := utf8.DecodeRuneInString(s.text[i:])
		if s.classes.of(r)&c == 0 {
			return i
		}
		i += w
	}
	return i
}

// contraction returns the end of (?i:'s|'t|'re|'ve|'m|'ll|'d) at i, or i.
func (s *scanner) contraction(i int) int {
	if i+1 >= len(s.text) || s.text[i] != '\'' {
		return i
	}
	var second byte
	if i+2 < len(s.text) {
		second = s.text[i+2]
	}
	switch s.text[i+1] | 0x20 { // lower case
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if second|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if second|0x20 == 'l' {
			return i + 3
		}
	}
	// The only other character that folds to one of these letters is ſ.
	if s.text[i+1] == "ſ"[0] && second == "ſ"[1] {
		return i + 3
	}
	return i
}

// number returns the end of \p{N}{1,3}, at whose first character i is.
func (s *scanner) number(i int) int {
	for range 3 {
		c, w := s.at(i)
		if c&number == 0 {
			break
		}
		i += w
	}
	return i
}

// white returns the end of \s*[\r\n]+|\s+(?!\S)|\s+ at i, where c is the class
// of the white space character there and w its width.
func (s *scanner) white(i int) int {
	s.blank = true
	text := s.text
	end, last, lines := i, i, i // last: the run's last character; lines: behind its last newline
	for end < len(text) {
		c, w := s.at(end)
		if c&space == 0 {
			break
		}
		last = end
		end += w
		if c&newline != 0 {
			lines = end
		}
	}
	switch {
	case lines > i: // \s*[\r\n]+ backs up to the run's last newline
		s.wasted += end - lines
		return lines
	case end == len(text) || last == i: // nothing follows, or nothing to give back
		return end
	default: // \s+(?!\S) leaves the last one to what follows
		s.wasted += end - last
		return last
	}
}
