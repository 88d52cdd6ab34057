package openai

import "github.com/tidwall/gjson"

// maxUsageBytes bounds what is kept of a usage object. Real ones have some
// hundred bytes.
const maxUsageBytes = 16 << 10

// UsageScanner finds the usage in a reply that passes by, and keeps no more of
// the reply than that: the member "usage" of its object, or of the member
// "response" there, as the events of the Responses API have it. Of several the
// last one counts.
type UsageScanner struct {
	// Events says that the reply is an event stream, each of whose lines may
	// hold an object.
	Events bool

	usage    Usage
	depth    int       // of brackets
	names    [3]string // of the members under way, by depth
	word     []byte    // the string under way, or the last one, as far as it matters
	inString bool
	escaped  bool   // the last byte was a backslash in a string
	value    []byte // the usage under way
	within   int    // the depth of its members; 0 where there is none
}

// Usage is what was found so far.
func (s *UsageScanner) Usage() Usage { return s.usage }

// Write takes the next bytes of the reply, split anywhere.
func (s *UsageScanner) Write(p []byte) {
	for _, c := range p {
		if s.Events && (c == '\n' || c == '\r') {
			s.depth, s.inString, s.escaped, s.within = 0, false, false, 0
			continue
		}
		if s.within > 0 {
			if s.value = append(s.value, c); len(s.value) > maxUsageBytes {
				s.within = 0
			}
		}
		if s.inString {
			s.inText(c)
			continue
		}
		switch c {
		case '"':
			s.inString, s.word = true, s.word[:0]
		case ':':
			if s.depth < len(s.names) {
				s.names[s.depth] = ourName(s.word)
			}
		case '{', '[':
			s.open(c)
		case '}', ']':
			s.close()
		}
	}
}

func (s *UsageScanner) inText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
		return
	}
	if len(s.word) <= len("response") { // any longer is none of our names
		s.word = append(s.word, c)
	}
}

// ourName is the name of a member, where it is one that matters.
func ourName(word []byte) string {
	switch string(word) {
	case "usage":
		return "usage"
	case "response":
		return "response"
	}
	return ""
}

func (s *UsageScanner) open(c byte) {
	usage := s.depth == 1 && s.names[1] == "usage" || s.depth == 2 && s.names[1] == "response" && s.names[2] == "usage"
	if s.depth++; s.depth < len(s.names) {
		s.names[s.depth] = ""
	}
	if usage && c == '{' && s.within == 0 {
		s.within, s.value = s.depth, append(s.value[:0], c)
	}
}

func (s *UsageScanner) close() {
	s.depth = max(s.depth-1, 0)
	if s.within == 0 || s.depth >= s.within {
		return
	}
	s.within = 0
	if !gjson.ValidBytes(s.value) {
		return
	}
	if u := readAnyUsage(gjson.Parse(unsafeString(s.value))); u != (Usage{}) {
		s.usage = u
	}
}

// readAnyUsage reads the usage of any endpoint.
func readAnyUsage(v gjson.Result) Usage {
	u := readUsage(v)
	if u == (Usage{}) {
		u = Usage{Prompt: tokensOf(v.Get("input_tokens")), Completion: tokensOf(v.Get("output_tokens"))}
	}
	if u == (Usage{}) {
		u.Prompt = tokensOf(v.Get("total_tokens"))
	}
	return u
}
