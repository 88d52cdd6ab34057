package main

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/backstory-proxy/backstory/knowledge/terms"
	"github.com/backstory-proxy/backstory/tokens"
)

// perMessage is what a chat message takes beside its content, in tokens.
const perMessage = 4

// archive is a session as the baselines see it.
type archive struct {
	messages []message
	tokens   []int // of each message, its content and 4
	bm25     bm25
}

func newArchive(s session) *archive {
	a := &archive{messages: s.Messages}
	texts := make([]string, len(s.Messages))
	for i, m := range s.Messages {
		texts[i] = m.Text
		a.tokens = append(a.tokens, tokens.O200K().Count(m.Text)+perMessage)
	}
	a.bm25 = newBM25(texts)
	return a
}

// recent are the newest messages that fit into a budget.
func (a *archive) recent(budget int) (text string, size int) {
	i := len(a.messages)
	for i > 0 && size+a.tokens[i-1] <= budget {
		i--
		size += a.tokens[i]
	}
	chosen := make([]int, 0, len(a.messages)-i)
	for ; i < len(a.messages); i++ {
		chosen = append(chosen, i)
	}
	return a.join(chosen), size
}

// matching are those that BM25 ranks first for a question, as far as they fit
// into a budget; one that is too long makes room for those behind it.
func (a *archive) matching(question string, budget int) (text string, size int) {
	var chosen []int
	for _, i := range a.bm25.rank(question) {
		if size+a.tokens[i] <= budget {
			size += a.tokens[i]
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	return a.join(chosen), size
}

func (a *archive) join(chosen []int) string {
	var b strings.Builder
	for _, i := range chosen {
		b.WriteString(a.messages[i].Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// bm25 ranks texts by the words that they share with a question.
type bm25 struct {
	frequency []map[string]int // of the words of each text
	length    []float64        // in words
	mean      float64          // of length
	texts     map[string]int   // how many hold a word
}

func newBM25(texts []string) bm25 {
	x := bm25{texts: make(map[string]int)}
	for _, text := range texts {
		frequency := make(map[string]int)
		all := terms.Of(text)
		for _, w := range all {
			frequency[w]++
		}
		for w := range frequency {
			x.texts[w]++
		}
		x.frequency = append(x.frequency, frequency)
		x.length = append(x.length, float64(len(all)))
		x.mean += float64(len(all)) / float64(len(texts))
	}
	return x
}

// rank returns the texts, those first that share the most with the question; of
// equal ones the newer.
func (x *bm25) rank(question string) []int {
	const k1, b = 1.2, 0.55
	scores, order := make([]float64, len(x.frequency)), make([]int, len(x.frequency))
	for _, w := range terms.Query(question) {
		n := float64(x.texts[w])
		idf := math.Log(1 + (float64(len(x.frequency))-n+0.5)/(n+0.5))
		for i, frequency := range x.frequency {
			if f := float64(frequency[w]); f > 0 {
				scores[i] += idf * f * (k1 + 1) / (f + k1*(1-b+b*x.length[i]/x.mean))
			}
		}
	}
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(scores[j], scores[i]), cmp.Compare(j, i))
	})
	return order
}
