package recall

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/knowledge/terms"
)

// talk indexes lines of "name: text" or "role: text", each line an exchange of
// its own unless it is the assistant's. A line of a date begins a segment.
func talk(lines ...string) (*Index, []Message) {
	x := New(preference)
	var now time.Time
	var all []Message
	seq, n := int64(0), 0
	for _, l := range lines {
		if t, err := time.Parse("2006-01-02 15:04", l); err == nil {
			now = t
			continue
		}
		who, text, _ := strings.Cut(l, ": ")
		m := Message{Role: who, Text: text, Time: now, Tokens: len(text)/4 + 3}
		if who != "user" && who != "assistant" {
			m.Role, m.Name = "user", who
		}
		if n++; m.Role != "assistant" || seq == 0 {
			seq, n = seq+1, 0
		}
		m.Seq, m.N = seq, n
		all = append(all, m)
	}
	x.Add(all...)
	return x, all
}

// preference is what the tests take for a pinned instruction.
func preference(text string) bool { return strings.HasPrefix(text, "I prefer ") }

// matches are all chunks that match, best first.
func matches(x *Index, q Query) []Hit { return slices.Collect(x.Search(q).Matches) }

// found returns the texts of hits.
func found(all []Message, hits []Hit) []string {
	var texts []string
	for _, h := range hits {
		i := slices.IndexFunc(all, func(m Message) bool { return m.Seq == h.Seq && m.N == h.N })
		texts = append(texts, all[i].Text[h.From:h.To])
	}
	return texts
}

func TestWhatTheMessageIsAboutComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		query Query
		want  string
	}{
		"a word": {
			[]string{"user: my dog is called Bo", "user: the rent is due", "user: nice weather"},
			Query{Text: "when must I pay the rent?"}, "the rent is due"},
		"another form of the word": {
			[]string{"user: I painted a fence", "user: the rent is due", "user: nice weather"},
			Query{Text: "what was it about painting?"}, "I painted a fence"},
		"a rare word before a common one": {
			[]string{"user: the cat eats fish", "user: the cat sleeps", "user: the cat likes Zanzibar", "user: the cat runs"},
			Query{Text: "cat Zanzibar"}, "the cat likes Zanzibar"},
		"the speaker who is named": {
			[]string{"Bob: tennis is what I love the most of it all, and all the time", "Ann: Bob, love tennis", "Ann: see you", "Bob: bye", "Ann: so", "Bob: on"},
			Query{Text: "Does Bob love tennis?"}, "tennis is what I love the most of it all, and all the time"},
		"a day that is named": {
			[]string{"2023-05-08 13:56", "user: we baked bread", "2023-06-09 10:00", "user: we baked rolls", "2023-07-10 10:00", "user: we baked buns"},
			Query{Text: "What did we bake on 9 June 2023?"}, "we baked rolls"},
		"a day and nothing else": {
			[]string{"2023-05-08 13:56", "user: a walk", "2023-06-09 10:00", "user: a swim", "2023-07-10 10:00", "user: a run"},
			Query{Text: "And on 2023-06-09?"}, "a swim"},
		"yesterday": {
			[]string{"2023-05-08 13:56", "user: we baked bread", "2023-06-09 10:00", "user: we baked rolls", "2023-07-10 10:00", "user: we baked buns"},
			Query{Text: "What did we bake yesterday?", Now: time.Date(2023, 6, 10, 9, 0, 0, 0, time.UTC)}, "we baked rolls"},
		"a time where one is asked for": {
			[]string{"user: the concert was loud", "user: ok", "user: fine", "user: hm", "user: the concert was yesterday", "user: so", "user: is that it"},
			Query{Text: "When was the concert?"}, "the concert was yesterday"},
		"another word for it": {
			[]string{"user: we flew to Lisbon in March", "user: my daughter started kindergarten", "user: the rent is due", "user: nice weather today"},
			Query{Text: "Which school do my children attend?"}, "my daughter started kindergarten"},
		"the word itself before another one for it": {
			[]string{"user: my daughter started kindergarten", "user: the school is closed", "user: the rent is due", "user: nice weather today"},
			Query{Text: "What about the school?"}, "the school is closed"},
		"another word for it, in another form": {
			[]string{"user: we flew to Lisbon in March", "user: we adopted two puppies", "user: the rent is due", "user: nice weather today"},
			Query{Text: "What are the dogs called?"}, "we adopted two puppies"},
		"chinese": {
			[]string{"user: 我的狗叫小白", "user: 房租下个月到期", "user: 天气很好"},
			Query{Text: "房租什么时候到期？"}, "房租下个月到期"},
		"russian, another case": {
			[]string{"user: моя собака спит", "user: хозяин поднял квартплату", "user: погода хорошая"},
			Query{Text: "что с квартплатой?"}, "хозяин поднял квартплату"},
		"a short answer before a long one": {
			[]string{"assistant: " + strings.Repeat("about the visa and many other things there is much to say. ", 12), "user: your visa ends in May", "user: fine"},
			Query{Text: "visa"}, "your visa ends in May"},
		"only what is older": {
			[]string{"user: the rent is 700", "user: the rent is 800"},
			Query{Text: "rent", Before: Ref{Seq: 2}}, "the rent is 700"},
		"another ranking where words fail": {
			[]string{"user: my dog is called Bo", "user: the rent is due", "user: nice weather"},
			Query{Text: "canine companion", Semantic: []Ref{{Seq: 1}}, SemanticWeight: 1}, "my dog is called Bo"},
	} {
		t.Run(name, func(t *testing.T) {
			x, all := talk(c.lines...)
			hits := matches(x, c.query)
			if len(hits) == 0 || found(all, hits)[0] != c.want || hits[0].Score <= 0 {
				t.Errorf("found %q %+v", found(all, hits), hits)
			}
		})
	}
}

func TestAnAnswerIsFoundByItsQuestion(t *testing.T) {
	x, all := talk("user: hello there", "assistant: good morning", "user: fine weather", "assistant: indeed",
		"user: how long does the kombucha ferment?", "assistant: nine days at most", "user: alright then", "assistant: you are welcome",
		"user: some more", "assistant: of what", "user: of that", "assistant: of this", "user: so be it", "assistant: amen")
	if got := found(all, matches(x, Query{Text: "kombucha"})); got[1] != "nine days at most" {
		t.Errorf("second is %q", got[1])
	}
}

func TestSmallTalkAndWhatWasNeverSaidFindNothing(t *testing.T) {
	x, all := talk("user: thanks for the bread", "user: go on about the rent", "user: nice weather")
	for _, text := range []string{"thanks!", "go on", "谢谢", "", "?!", "xylophone"} {
		if hits := matches(x, Query{Text: text}); len(hits) > 0 {
			t.Errorf("%q finds %q", text, found(all, hits))
		}
	}
}

func TestPinnedInstructionsThatMatchComeFirstAndThenTheNewest(t *testing.T) {
	x, all := talk("user: I prefer short answers", "user: one", "user: two", "user: three", "user: I prefer tables for prices", "user: four", "user: five", "user: six", "user: I prefer bread")
	want := []string{"I prefer tables for prices", "I prefer bread", "I prefer short answers"}
	if got := found(all, x.Search(Query{Text: "What were the prices?"}).Pinned()); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	x.Remove(all[len(all)-1].Seq)
	if got := x.Search(Query{Text: "xylophone"}).Pinned(); len(got) != 2 || !got[0].Pinned {
		t.Errorf("got %+v", got)
	}
}

func TestWhatTheAssistantSaidComesFirstWhereThatIsAskedFor(t *testing.T) {
	x, _ := talk("assistant: "+strings.Repeat("for the visa you need a photo, and patience. ", 12), "user: fine", "user: well", "user: when my visa ends, I go home by train", "user: hm")
	for query, want := range map[string]bool{"What did you say about the visa?": true, "What did I say about the visa?": false} {
		hits := matches(x, Query{Text: query})
		place := func(seq int64) int { return slices.IndexFunc(hits, func(h Hit) bool { return h.Seq == seq }) }
		if first := place(1) < place(4); first != want {
			t.Errorf("%q: %+v", query, hits)
		}
	}
}

func TestAQueryMayAskWhatTheAssistantSaid(t *testing.T) {
	for text, want := range map[string]bool{
		"What did you recommend?": true, "the list that you gave me": true, "your last suggestion": true, "You said it was cheap": true,
		"Was hast du empfohlen?": true, "Du hattest einen Wein genannt": true, "Was haben Sie gesagt?": true,
		"Qu'as-tu dit du vin ?": true, "Le vin que vous avez cité": true,
		"Can you recommend a wine?": false, "Can you list the wines?": false, "Would you say so?": false, "What did I say?": false, "": false, "you": false, "your": false,
		"I told you about my visa": false, "As you know, I sail": false, "In your opinion, is it cheap?": false, "Kannst du mir helfen?": false,
	} {
		if got := asksWhatAssistantSaid(terms.Of(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestOfALongMessageTheChunkIsFound(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "Paragraph %d tells of one thing and of another, and it does so at some length.\nIt has two lines.\n\n", i)
		if i == 23 {
			b.WriteString("The password of the cellar is xyzzy.\n\n")
		}
	}
	m := Message{Seq: 1, Role: "assistant", Text: b.String(), Tokens: 1000}
	x := New(preference)
	x.Add(m)
	hits := matches(x, Query{Text: "the cellar's password"})
	if got := m.Text[hits[0].From:hits[0].To]; !strings.Contains(got, "xyzzy") || len(got) > maxChunk || hits[0].Tokens > 400 {
		t.Errorf("found %d tokens: %q", hits[0].Tokens, got)
	}
	slices.SortFunc(hits, func(a, b Hit) int { return a.From - b.From })
	at, tokens := 0, 0
	for _, h := range hits {
		if h.From != at || !strings.HasSuffix(m.Text[:h.To], "\n\n") {
			t.Errorf("a chunk from %d to %d follows %d", h.From, h.To, at)
		}
		at, tokens = h.To, tokens+h.Tokens
	}
	if at != len(m.Text) || tokens < m.Tokens {
		t.Errorf("the chunks end at %d of %d and take %d tokens", at, len(m.Text), tokens)
	}
}

func TestWhereNothingIsAheadNothingIsFound(t *testing.T) {
	x, all := talk("user: nice weather today", "user: the rent is due")
	if hits := matches(x, Query{Text: "weather and rain, on 8 May 2023", Before: Ref{Seq: all[0].Seq, N: all[0].N}}); len(hits) != 0 {
		t.Errorf("found %+v", hits)
	}
	if hits := matches(New(preference), Query{Text: "weather and rain, on 8 May 2023"}); len(hits) != 0 {
		t.Errorf("in an empty index: %+v", hits)
	}
}

func TestBytesIsAboutWhatTheHeapHolds(t *testing.T) {
	_, all := talk(chatter(5000)...)
	held := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools are emptied by the second
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := held()
	x := New(preference)
	x.Add(all...)
	grown := held() - before
	if n := x.Bytes(); n < grown*4/5 || n > grown*6/5 {
		t.Errorf("%d of %d bytes", n, grown)
	}
	runtime.KeepAlive(all)
}

func TestARemovedExchangeIsNotFound(t *testing.T) {
	lines := []string{"user: the rent is 700", "assistant: noted", "user: the cat is ill", "assistant: poor cat", "user: the rent is 800", "assistant: noted"}
	for _, seq := range []int64{1, 2, 3} {
		x, all := talk(lines...)
		x.Remove(seq)
		x.Remove(99)
		x.Remove(seq)
		for text, left := range map[string]bool{"rent": true, "cat": seq != 2} {
			hits := matches(x, Query{Text: text})
			if len(hits) > 0 != left || slices.ContainsFunc(hits, func(h Hit) bool { return h.Seq == seq }) {
				t.Errorf("without %d, %q finds %q", seq, text, found(all, hits))
			}
		}
	}
}

func TestReplacingTheNewestLeavesNoTrace(t *testing.T) {
	x, all := talk("user: the rent is 700", "assistant: noted", "user: the cat is ill", "assistant: poor cat")
	y, _ := talk("user: the rent is 700", "assistant: noted", "user: the cat is ill", "assistant: poor cat")
	for range 100 {
		x.Remove(2)
		x.Add(all[2:]...)
	}
	for _, text := range []string{"rent", "cat", "poor"} {
		if a, b := matches(x, Query{Text: text}), matches(y, Query{Text: text}); !slices.Equal(a, b) {
			t.Errorf("%q finds %+v, else %+v", text, a, b)
		}
	}
	if x.Bytes() > y.Bytes()*2 {
		t.Errorf("grew from %d to %d bytes", y.Bytes(), x.Bytes())
	}
	x.Remove(2)
	x.Remove(1)
	if hits := matches(x, Query{Text: "rent"}); len(hits) != 0 {
		t.Errorf("an empty index finds %+v", hits)
	}
	x.Add(all...)
	if hits := matches(x, Query{Text: "rent"}); len(hits) != 4 {
		t.Errorf("filled again, it finds %+v", hits)
	}
}

// Adding one by one, as requests come, finds the same as adding all at once.
func TestAddingStepByStepIsAddingAtOnce(t *testing.T) {
	_, all := talk(chatter(400)...)
	x, y := New(preference), New(preference)
	x.Add(all...)
	for i := range all {
		y.Add(all[i])
		matches(y, Query{Text: all[i].Text})
	}
	if a, b := matches(x, Query{Text: all[7].Text}), matches(y, Query{Text: all[7].Text}); !slices.Equal(a, b) {
		t.Errorf("%v and %v", a[:3], b[:3])
	}
}

func TestHostileInputIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var random strings.Builder
	for random.Len() < 4<<20 {
		fmt.Fprintf(&random, "%x ", r.Uint64())
	}
	for name, text := range map[string]string{
		"one endless word":    strings.Repeat("x", 4<<20),
		"random words":        random.String(),
		"chinese, no breaks":  strings.Repeat("退款政策", 1<<18),
		"combining marks":     "a" + strings.Repeat("\u0301", 1<<20),
		"not utf-8":           strings.Repeat("\xff\x80\xe4", 1<<20),
		"nothing but spaces":  strings.Repeat(" ", 4<<20),
		"nothing but periods": strings.Repeat(". ", 1<<20),
		"nothing but numbers": strings.Repeat("12.12.2012 ", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			x := New(preference)
			start := time.Now()
			x.Add(Message{Seq: 1, Role: "user", Name: text, Text: text, Tokens: 1 << 20}, Message{Seq: 2, Role: "user", Text: "fine"})
			matches(x, Query{Text: text})
			if d := time.Since(start); d > 5*time.Second { // measured: at most half a second
				t.Errorf("took %v", d)
			}
			if n := x.Bytes(); n > 8<<20 {
				t.Errorf("holds %d bytes", n)
			}
			x.Remove(1)
			if hits := matches(x, Query{Text: "fine"}); len(hits) != 1 {
				t.Errorf("found %v", hits)
			}
		})
	}
}

// chatter returns lines of made-up talk: words as frequent as Zipf has them.
func chatter(n int) []string {
	r := rand.New(rand.NewPCG(3, 4))
	z := rand.NewZipf(r, 1.1, 8, 20_000)
	lines := make([]string, 0, n)
	for i := range n {
		words := []string{[]string{"user:", "assistant:"}[i%2]}
		for range 10 + r.IntN(30) {
			words = append(words, fmt.Sprintf("w%c%c%c", 'a'+z.Uint64()%26, 'a'+z.Uint64()/26%26, 'a'+z.Uint64()/676%30))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
