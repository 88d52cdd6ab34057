package tokens

// o200k returns the end of the piece that starts at i:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (s *scanner) o200k(i int) int {
	c, w := s.at(i)
	switch {
	case c&letter != 0:
		end, _ := s.word(i)
		return s.contraction(end)
	case c&number != 0:
		return s.number(i)
	}
	next, _ := s.at(i + w)
	if c&prefix != 0 {
		if next&(upper|lower) != 0 {
			end, first := s.word(i + w)
			if first || c&upper == 0 {
				return s.contraction(end)
			}
			// A mark before capitals: the first pattern, which doesn't match
			// with the mark as prefix, does match the mark alone.
			s.wasted += end - i - w
		}
		if c&upper != 0 { // a mark is a word by itself
			end, _ := s.word(i)
			return s.contraction(end)
		}
	}
	if c&punctuation != 0 || s.text[i] == ' ' && next&punctuation != 0 {
		end := s.run(i+w, punctuation)
		for end < len(s.text) {
			if b := s.text[end]; b != '\r' && b != '\n' && b != '/' {
				break
			}
			end++
		}
		return end
	}
	return s.white(i)
}

// word returns the end of what o200k's first two patterns match from i, behind
// their optional prefix and before the contraction, and whether it is the
// first that matches. At i is a letter or a mark.
func (s *scanner) word(i int) (end int, first bool) {
	both := -1 // behind the last character that is upper and lower
	for {
		c, w := s.at(i)
		if c&upper == 0 {
			if c&lower != 0 {
				return s.run(i+w, lower), true
			}
			break
		}
		i += w
		if c&lower != 0 {
			both = i
		}
	}
	if both < 0 {
		return i, false // capitals only
	}
	// The capitals have taken everything; the engine backs up to the last
	// character that can stand for the required lower case one.
	s.wasted += i - both
	return both, true
}

// cl100k returns the end of the piece that starts at i:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (s *scanner) cl100k(i int) int {
	if end := s.contraction(i); end > i {
		return end
	}
	c, w := s.at(i)
	switch {
	case c&letter != 0:
		return s.run(i+w, letter)
	case c&number != 0:
		return s.number(i)
	}
	next, _ := s.at(i + w)
	if c&prefix != 0 && next&letter != 0 {
		return s.run(i+w, letter)
	}
	if c&punctuation != 0 || s.text[i] == ' ' && next&punctuation != 0 {
		return s.run(s.run(i+w, punctuation), newline)
	}
	return s.white(i)
}
