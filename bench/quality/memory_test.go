package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/tokens"
)

// chatOf makes messages from lines such as "user: hello".
func chatOf(lines ...string) (messages []said) {
	for _, l := range lines {
		role, content, _ := strings.Cut(l, ": ")
		messages = append(messages, said{Role: role, Content: content})
	}
	return messages
}

func TestContextIsAllButTheQuestion(t *testing.T) {
	history := chatOf("user: I live in Lisbon.", "assistant: Nice.")
	history[0].Name = "Ada"
	c, err := contextOf(append(history, said{Role: "user", Content: "Passages: x\n\nWhere do I live?"}), "Where do I live?")
	if err != nil {
		t.Fatal(err)
	}
	if want := "I live in Lisbon.\nNice.\nPassages: x\n\n"; c.text != want {
		t.Errorf("text %q", c.text)
	}
	count := tokens.O200K().Count
	if want := 4 + count("I live in Lisbon.") + 1 + count("Ada") + 4 + count("Nice.") + count("Passages: x\n\n"); c.tokens != want {
		t.Errorf("%d tokens, want %d", c.tokens, want)
	}
	if _, err := contextOf(chatOf("user: something else"), "Where do I live?"); err == nil {
		t.Error("a prompt without the question is taken for one")
	}
}

func TestLastExchanges(t *testing.T) {
	all := chatOf("assistant: 0", "user: 1", "assistant: 2", "user: 3", "user: 4", "assistant: 5", "assistant: 6", "user: 7", "assistant: 8", "user: 9")
	for n, want := range [][]said{all[9:9], all[7:9], all[3:9], all[1:9], all[:9]} {
		if got := lastExchanges(all, n); len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%d: %v", n, got)
		}
	}
}

func TestContains(t *testing.T) {
	sent := chatOf("system: s", "user: 1", "assistant: 2", "user: 3", "assistant: 4", "user: q")
	for _, c := range []struct {
		name string
		run  []said
		want bool
	}{
		{"a run", sent[1:5], true},
		{"the end", sent[4:], true},
		{"with a gap", chatOf("user: 1", "user: 3"), false},
		{"other words", chatOf("user: 3", "assistant: 4!"), false},
		{"another name", []said{{Role: "user", Name: "Ada", Content: "3"}}, false},
		{"longer than all", append(sent[:6:6], sent[0]), false},
	} {
		if got := contains(sent, c.run); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

func TestJudge(t *testing.T) {
	evidence := map[string]words{"1": wordsOf("I live in Lisbon"), "2": wordsOf("I have a dog"), "3": wordsOf("he barks")}
	q := &question{Evidence: []string{"1", "2", "3"}}
	for _, c := range []struct {
		context  string
		all, any bool
		recall   float64
	}{
		{"I live in Lisbon. I have a dog. He barks.", true, true, 1},
		{"He barks.", false, true, 1. / 3},
		{"She sings.", false, false, 0},
	} {
		var a answer
		if a.judge(c.context, q, evidence); a.all != c.all || a.any != c.any || a.recall != c.recall {
			t.Errorf("%q: %+v", c.context, a)
		}
	}
}

func TestMemoryRows(t *testing.T) {
	yes, no := true, false
	rows := memoryRows(row{Section: sectionMemory, Budget: 100},
		[]question{{Category: "when"}, {Category: "who"}, {Category: "when"}, {}},
		[]answer{
			{all: true, any: true, recall: 1, tokens: 100, lastTwo: &yes, short: true},
			{any: true, recall: .5, tokens: 101, lastTwo: &no},
			{tokens: 50},
			{all: true, any: true, recall: 1, tokens: 49},
		})
	if len(rows) != 3 || rows[0].N != 4 || rows[1].Category != "when" || rows[1].N != 2 || rows[2].N != 1 {
		t.Fatalf("%+v", rows)
	}
	want := map[string]float64{"all": .5, "any": .75, "recall": .625, "tokens_mean": 75, "tokens_max": 101, "over_budget": 1, "last_two": .5, "last_two_short": 1}
	if !reflect.DeepEqual(rows[0].Figures, want) {
		t.Errorf("all: %v", rows[0].Figures)
	}
	if f := rows[1].Figures; f["all"] != .5 || f["last_two"] != 1 {
		t.Errorf("when: %v", f)
	}
	if _, ok := rows[2].Figures["last_two"]; !ok {
		t.Errorf("who: %v", rows[2].Figures)
	}
}

func TestBaselines(t *testing.T) {
	a := newArchive(session{Messages: []message{
		{Text: "The dog is called Otto and he is brown."},
		{Text: "We had soup."},
		{Text: "The dog Otto barks at the soup, and the soup gets cold."},
		{Text: "It rains."},
	}})
	first, last := a.tokens[0], a.tokens[3]
	for _, c := range []struct {
		name string
		get  func(int) (string, int)
		size int
		want string
	}{
		{"recent: nothing fits", a.recent, last - 1, ""},
		{"recent: one fits", a.recent, last, "It rains.\n"},
		{"recent: what is too long ends it", a.recent, last + a.tokens[2] - 1, "It rains.\n"},
		{"recent: all", a.recent, 1000, "The dog is called Otto and he is brown.\nWe had soup.\nThe dog Otto barks at the soup, and the soup gets cold.\nIt rains.\n"},
		{"BM25: the best", func(n int) (string, int) { return a.matching("Is Otto brown?", n) }, first, "The dog is called Otto and he is brown.\n"},
		{"BM25: what is too long makes room", func(n int) (string, int) { return a.matching("Is Otto brown?", n) }, first + last, "The dog is called Otto and he is brown.\nIt rains.\n"},
		{"BM25: of equal ones the newer", func(n int) (string, int) { return a.matching("Is Otto brown?", n) }, first + a.tokens[1], "The dog is called Otto and he is brown.\nIt rains.\n"},
	} {
		text, size := c.get(c.size)
		if text != c.want || size > c.size {
			t.Errorf("%s: %d tokens %q", c.name, size, text)
		}
	}
}
