package knowledge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// scored makes hits of texts, whose scores fall a little from one to the next.
func scored(texts ...string) []store.Hit {
	hits := make([]store.Hit, len(texts))
	for i, text := range texts {
		hits[i] = store.Hit{FileID: fmt.Sprint(i), Filename: fmt.Sprint(i), Chunk: store.Chunk{Text: text}, Score: 10 - float64(i)/10}
	}
	return hits
}

func TestHitsRiseThatShareWordsWithTheBest(t *testing.T) {
	for name, texts := range map[string][]string{
		"what is about the same": {"boundary layer on a flat plate", "boundary layers and plates", "the layer at the plate", "flow of traffic in a town", "a plate in the boundary layer"},
		"whatever form and case": {"Возвраты денег", "возврат", "о возвратах", "другое", "ещё возвратами денег"},
	} {
		hits := scored(texts...)
		rerank(hits)
		got := names(hits)
		if !strings.HasPrefix(got, "0 ") || strings.Index(got, "4") > strings.Index(got, "3") {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestHitsStayWhereTheBestShareNothing(t *testing.T) {
	for name, texts := range map[string][]string{
		"stop words":             {"and of the", "and of the", "of the and", "xylophone", "and of the"},
		"what all have":          {"plate", "plate", "plate", "plate", "plate"},
		"few hits":               {"a plate", "b", "a plate"},
		"texts without words":    {"…", "", "?!", "", " \n"},
		"texts without spaces":   {"退款政策", "退款期限", "政策退款", "天气很好", "退款政策期限"},
		"no two with a word":     {"one", "two", "three", "four", "five"},
		"the first one is apart": {"xylophone", "plate"},
	} {
		hits := scored(texts...)
		rerank(hits)
		if got := names(hits); got != names(scored(texts...)) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func BenchmarkFeedback(b *testing.B) {
	var texts []string
	for i := range 60 {
		texts = append(texts, prose(20+i%5))
	}
	b.Logf("%d bytes each", len(texts[0]))
	for b.Loop() {
		rerank(scored(texts...))
	}
}
