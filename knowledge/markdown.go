package knowledge

import "strings"

// classify tells what a line of Markdown is; of headings also the level and
// the text.
func (o *outline) classify(s string) (kind lineKind, level int, title string) {
	trimmed := strings.TrimLeft(s, " \t")
	indent := len(s) - len(trimmed)
	if o.fence != "" {
		if indent <= 3 && strings.HasPrefix(trimmed, o.fence) && strings.Trim(trimmed, o.fence[:1]+" \t") == "" {
			o.fence = ""
		}
		return lineCode, 0, ""
	}
	if trimmed == "" {
		return lineBlank, 0, ""
	}
	switch c := trimmed[0]; {
	case c == '#':
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		if level <= 6 && (len(trimmed) == level || trimmed[level] == ' ' || trimmed[level] == '\t') {
			return lineHeading, level, trimmed[level:]
		}
	case c == '`' || c == '~':
		if n := len(trimmed) - len(strings.TrimLeft(trimmed, string(c))); n >= 3 && !strings.Contains(trimmed[n:], "`") {
			o.fence = trimmed[:min(n, 16)]
			return lineCode, 0, ""
		}
	case c == '|':
		return lineRow, 0, ""
	case isItem(trimmed):
		return lineItem, 0, ""
	case indent >= 4 && o.last != lineText && o.last != lineItem:
		return lineCode, 0, ""
	}
	return lineText, 0, ""
}

// isItem reports whether a line begins an item of a list: -, * or + and a
// space, or up to nine digits, a full stop or bracket, and a space.
func isItem(s string) bool {
	rest := strings.TrimLeft(s[:min(len(s), 9)], "0123456789")
	digits := min(len(s), 9) - len(rest)
	if digits == 0 {
		return len(s) > 1 && strings.IndexByte("-*+", s[0]) >= 0 && (s[1] == ' ' || s[1] == '\t')
	}
	s = s[digits:]
	return len(s) > 1 && (s[0] == '.' || s[0] == ')') && (s[1] == ' ' || s[1] == '\t')
}

// underline returns the level of the heading that a line makes of the single
// line above it (=== or ---); 0 if it is no underline.
func underline(s string) int {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return 0
	case strings.Trim(s, "=") == "":
		return 1
	case len(s) >= 3 && strings.Trim(s, "-") == "":
		return 2
	}
	return 0
}
