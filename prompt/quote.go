package prompt

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Quote is an older message of the session, or a part of it, that the request is
// about.
type Quote struct {
	Seq      int64 // of its exchange
	N        int   // its index there
	From, To int   // the part of what it says, in bytes
	Size     int   // of all that it says, in bytes
	Role     string
	Name     string // of who said it, as the message gives it; empty: none
	Time     time.Time
	Text     string // the part
	// Carried says that the request carries the message itself.
	Carried bool
}

// reminder says what the messages are. Both sides have said them in this
// conversation: an instruction of the user's is one.
const reminder = "From earlier in this conversation, oldest first; indented lines continue:\n"

// indent sets a message's further lines apart from those that begin a message:
// what somebody says can't pass for what somebody else said, or when.
var indent = strings.NewReplacer("\r\n", "\n ", "\n", "\n ", "\r", "\n ", "\v", "\n ", "\f", "\n ", "\u0085", "\n ", "\u2028", "\n ", "\u2029", "\n ")

// quoteOverhead and dayTokens are about what it takes to quote messages, beside
// the messages: once, and for each day that is told.
const (
	quoteOverhead = 36
	dayTokens     = 4
)

// fills is how often a budget is filled: together, messages take less than each
// does by itself, and leave room for more. A third time brings nothing.
const fills = 2

// fitQuotes returns the messages that fit into a budget, in the order of the
// session, and the text that quotes them. They come best first; one that is too
// long makes room for shorter ones behind it.
func fitQuotes(quotes []Quote, budget int, count func(string) int) (ordered []Quote, text string, tokens int) {
	var fit []Quote
	rest, left := slices.Clone(quotes), budget-quoteOverhead
	told := map[time.Time]bool{{}: true} // the days; of none, nothing is told
	for range fills {
		n := len(fit)
		rest = slices.DeleteFunc(rest, func(q Quote) bool {
			cost := count(q.line())
			if !told[q.day()] {
				cost += dayTokens
			}
			if cost > left {
				return false
			}
			left -= cost
			told[q.day()] = true
			fit = append(fit, q)
			return true
		})
		if len(fit) == n {
			break
		}
		for ; len(fit) > 0; fit = fit[:len(fit)-1] {
			ordered = inOrder(fit)
			text = renderQuotes(ordered)
			if tokens = count(text); tokens <= budget {
				break
			}
		}
		left = budget - tokens
	}
	if len(fit) == 0 {
		return nil, "", 0
	}
	return ordered, text, tokens
}

// quoteTokens is what it takes to quote the messages.
func quoteTokens(quotes []Quote, count func(string) int) int {
	_, _, tokens := fitQuotes(quotes, math.MaxInt, count)
	return tokens
}

// inOrder returns the messages in the order of the session, adjacent parts of
// one message as one.
func inOrder(quotes []Quote) []Quote {
	sorted := slices.Clone(quotes)
	slices.SortFunc(sorted, func(a, b Quote) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.N, b.N), cmp.Compare(a.From, b.From))
	})
	joined := sorted[:0]
	for _, q := range sorted {
		if n := len(joined); n > 0 && joined[n-1].sameMessage(&q) && q.From <= joined[n-1].To {
			if last := &joined[n-1]; q.To > last.To {
				last.Text += q.Text[last.To-q.From:]
				last.To = q.To
			}
			continue
		}
		joined = append(joined, q)
	}
	return joined
}

// day is the day on which the message was said, by UTC; zero: unknown.
func (q *Quote) day() time.Time { return q.Time.UTC().Truncate(24 * time.Hour) }

func (q *Quote) sameMessage(other *Quote) bool { return q.Seq == other.Seq && q.N == other.N }

// renderQuotes is the text that quotes the messages: who said what, the name
// once for what somebody said in a row; and above those of one day, when: the
// year where it is another. Lines with the whole date and the time would take
// three times as many tokens.
func renderQuotes(quotes []Quote) string {
	mark := markerOf(func(write func(string)) {
		for i := range quotes {
			write(quotes[i].speaker())
			write(quotes[i].part())
		}
	})
	var b strings.Builder
	b.WriteString(reminder + "<<<earlier " + mark + ">>>\n")
	var told time.Time // the last day
	speaker := ""      // of the line before
	for i := range quotes {
		m := &quotes[i]
		if day := m.day(); !day.IsZero() && !day.Equal(told) {
			layout := "[2 Jan]\n"
			if told.IsZero() || day.Year() != told.Year() {
				layout = "[2 Jan 2006]\n"
			}
			b.WriteString(day.Format(layout))
			told, speaker = day, ""
		}
		if m.speaker() == speaker {
			b.WriteString(" " + m.said() + "\n")
			continue
		}
		b.WriteString(m.line())
		speaker = m.speaker()
	}
	b.WriteString("<<<end " + mark + ">>>\n\n")
	return b.String()
}

// line quotes the message.
func (q *Quote) line() string { return q.speaker() + ": " + q.said() + "\n" }

// speaker is who said it: the name, or else the role. A client can give its users any
// name: one that is more than a word, or that could be taken for a role, stands in
// quotes behind the role. Those cost up to four tokens at each change of speaker, and
// a conversation of people has many.
func (q *Quote) speaker() string {
	switch {
	case q.Name == "":
		return oneLine(q.Role)
	case plainName.MatchString(q.Name) && !roleLike.MatchString(q.Name):
		return q.Name
	}
	return oneLine(q.Role) + " " + label(q.Name)
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // as OpenAI's names were at first
	roleLike  = regexp.MustCompile(`(?i)system|developer|user|assistant|tool|function|model|admin|root`)
)

// said is what is quoted of the message, its further lines indented.
func (q *Quote) said() string { return indent.Replace(strings.TrimSpace(q.part())) }

// part is what is quoted of the message, with dots where it goes on.
func (q *Quote) part() string {
	text := visible(q.Text)
	if q.From > 0 {
		text = "… " + text
	}
	if q.To < q.Size {
		text += " …"
	}
	return text
}
