package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// history makes exchanges of a list of short messages, said a minute apart.
func history(list string) []store.Exchange {
	h := memory.History{ID: "i", Now: time.Unix(1_800_000_000, 0), Count: func(m *openai.Message) int { return len(m.JSON) }}
	for i, m := range parse(list) {
		h.Messages = append(h.Messages, openai.Imported{Message: m, Created: time.Unix(int64(60*i), 0)})
	}
	exchanges := h.Exchanges()
	for i := range exchanges {
		exchanges[i].Seq = int64(i + 1)
	}
	return exchanges
}

func TestAnImportIsCutIntoExchanges(t *testing.T) {
	for name, c := range map[string]struct{ in, want, included string }{
		"exchanges":                        {"u:1 a:2 u:3 a:4", "u:1 a:2 | u:3 a:4", "u:1 a:2 | u:3 a:4"},
		"instructions aren't kept":         {"s:x u:1 a:2 s:y u:3 a:4", "u:1 a:2 | u:3 a:4", "u:1 a:2 | u:3 a:4"},
		"nothing but instructions":         {"s:x s:y", "", ""},
		"several questions in a row":       {"u:1 u:2 a:3 u:4 a:5", "u:1 u:2 a:3 | u:4 a:5", "u:1 u:2 a:3 | u:4 a:5"},
		"calls stay with their results":    {"u:1 c:x,y r:y r:x a:2 u:3 a:4", "u:1 c:x,y r:y r:x a:2 | u:3 a:4", "u:1 c:x,y r:y r:x a:2 | u:3 a:4"},
		"a greeting is kept, not included": {"a:hello u:1 a:2", "a:hello | u:1 a:2", "u:1 a:2"},
		"a result without its call":        {"r:x a:1 u:2 a:3", "r:x a:1 | u:2 a:3", "u:2 a:3"},
		"a call never answered":            {"u:1 c:x u:2 a:3", "u:1 c:x | u:2 a:3", "u:2 a:3"},
		"an answer that says nothing":      {"u:1 a: u:2 a:3", "u:1 a: | u:2 a:3", "u:2 a:3"},
		"a question never answered":        {"u:1 a:2 u:3", "u:1 a:2 | u:3", "u:1 a:2 | u:3"},
	} {
		t.Run(name, func(t *testing.T) {
			exchanges := history(c.in)
			if got := shown(exchanges); got != c.want {
				t.Errorf("exchanges %s, want %s", got, c.want)
			}
			conv := memory.Conversation(parse("u:new"))
			var groups []string
			for _, g := range memory.Reconcile(exchanges, conv, false, time.Unix(1_800_000_000, 0)).Groups {
				groups = append(groups, strings.ReplaceAll(shown(g.Exchanges), " | ", " "))
			}
			if got := strings.Join(groups, " | "); got != c.included {
				t.Errorf("included %s, want %s", got, c.included)
			}
		})
	}
}

func TestWhatIsImportedInPiecesIsIncludedWhole(t *testing.T) {
	var exchanges []store.Exchange
	for i, part := range []string{"u:1", "a:2", "u:3 c:x,y", "r:x", "r:y a:4"} {
		for _, e := range history(part) {
			e.ID, e.Seq = fmt.Sprint(i), int64(i+1)
			exchanges = append(exchanges, e)
		}
	}
	v := memory.Reconcile(exchanges, memory.Conversation(parse("u:new")), false, time.Unix(1_800_000_000, 0))
	var groups []string
	for _, g := range v.Groups {
		groups = append(groups, strings.ReplaceAll(shown(g.Exchanges), " | ", " "))
	}
	if got := strings.Join(groups, " | "); got != "u:1 a:2 | u:3 c:x,y r:x r:y a:4" {
		t.Errorf("included %s", got)
	}
}

func TestAnImportThatIsResentIsNeitherIncludedNorSavedAgain(t *testing.T) {
	const conversation = "u:1 c:x r:x a:2 u:3 a:4 u:5 a:6"
	exchanges := history("s:x " + conversation)
	conv := memory.Conversation(parse("s:x " + conversation + " u:new"))
	v := memory.Reconcile(exchanges, conv, false, time.Unix(1_800_000_000, 0))
	if len(v.Groups) != 0 || v.New != len(conv)-1 {
		t.Errorf("%d groups are included, and from %d of %d saved", len(v.Groups), v.New, len(conv))
	}
}

func TestAnAnswerWithoutWordsMaySaySomethingAllTheSame(t *testing.T) {
	for json, hidden := range map[string]bool{
		`{"role":"assistant"}`: true,
		`{"role":"assistant","content":null,"tool_calls":[],"refusal":null}`:              true,
		`{"role":"assistant","content":[]}`:                                               true,
		`{"role":"assistant","content":[{"type":"text","text":" "}]}`:                     true,
		`{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}`: false,
		`{"role":"assistant","content":null,"refusal":"no"}`:                              false,
		`{"role":"assistant","content":null,"audio":{"id":"a"}}`:                          false,
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`:              false,
		`{"role":"user","content":""}`:                                                    false,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function"}]}`: false,
	} {
		h := memory.History{Messages: []openai.Imported{{Message: openai.ParseMessage([]byte(json))}}, Count: func(*openai.Message) int { return 1 }}
		if e := h.Exchanges()[0]; e.Hidden != hidden {
			t.Errorf("%s is hidden: %v", json, e.Hidden)
		}
	}
}

func TestAMessageKeepsItsTimeAndAnExchangeThatOfItsLast(t *testing.T) {
	e := history("u:1 a:2 u:3 a:4")[1]
	if !e.Created.Equal(time.Unix(180, 0)) || !e.Messages[0].Created.Equal(time.Unix(120, 0)) || e.Messages[0].Tokens == 0 {
		t.Errorf("got %+v", e)
	}
	h := memory.History{ID: "i", Now: time.Unix(1_800_000_000, 0), Count: func(*openai.Message) int { return 1 }}
	h.Messages = []openai.Imported{{Message: parse("u:1")[0]}}
	if e := h.Exchanges()[0]; !e.Created.Equal(h.Now) || !e.Messages[0].Created.IsZero() || e.ID != "i-0" {
		t.Errorf("got %+v", e)
	}
}

func TestAnImportIsNoRequestThatCouldBeRetried(t *testing.T) {
	h := memory.History{ID: "i", Now: time.Unix(1_800_000_000, 0), Count: func(*openai.Message) int { return 1 }}
	for _, m := range parse("u:1 a:2") {
		h.Messages = append(h.Messages, openai.Imported{Message: m})
	}
	exchanges := h.Exchanges()
	exchanges[0].Seq = 1
	if v := memory.Reconcile(exchanges, memory.Conversation(parse("u:1")), true, h.Now); v.Replaces != 0 || len(v.Groups) != 1 {
		t.Errorf("got %+v", v)
	}
}

// shown are exchanges as short messages.
func shown(exchanges []store.Exchange) string {
	var list []string
	for i := range exchanges {
		list = append(list, shorts(exchanges[i].Messages))
	}
	return strings.Join(list, " | ")
}
