package redis

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/store"
)

// upload adds a processed file with a chunk to each text, all with a vector.
func upload(t *testing.T, s *Store, tenant, id, model string, texts ...string) {
	t.Helper()
	ctx := context.Background()
	chunks := make([]store.Chunk, len(texts))
	for i, text := range texts {
		chunks[i] = store.Chunk{N: i, Text: text, Terms: text, Vector: []float32{1, float32(i)}}
	}
	f := store.File{ID: id, Name: id, Model: model}
	copy(f.Digest[:], id)
	_, err := s.CreateFile(ctx, of(tenant), f, strings.NewReader(id))
	if err == nil {
		err = s.AddChunks(ctx, of(tenant), id, chunks)
	}
	if err == nil {
		err = s.FinishFile(ctx, of(tenant), id, store.FileProcessed, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnIndexThatIsGoneIsMadeAgain(t *testing.T) {
	s := openAt(t, searchServer(t), Options{Prefix: newPrefix() + t.Name() + ":", Model: "m", Dimensions: 2})
	ctx := context.Background()
	upload(t, s, "a", "f", "m", "alpha", "beta")
	for range 2 {
		hits, err := s.SearchText(ctx, of("a"), []string{"beta"}, 5)
		if err != nil || len(hits) != 1 || hits[0].Chunk.N != 1 {
			t.Errorf("by words: got %+v, %v", hits, err)
		}
		hits, err = s.SearchVector(ctx, of("a"), "m", []float32{1, 0}, 5)
		if err != nil || len(hits) != 2 || hits[0].Chunk.N != 0 {
			t.Errorf("by vector: got %+v, %v", hits, err)
		}
		for _, name := range []string{s.textIndex(), s.vectorIndex("m", 2)} {
			if err := s.client.Do(ctx, "FT.DROPINDEX", name).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFlatFindsTheNearestToo(t *testing.T) {
	s := openAt(t, searchServer(t), Options{Prefix: newPrefix() + t.Name() + ":", Algorithm: Flat})
	upload(t, s, "a", "f", "m", "alpha", "beta", "gamma")
	hits, err := s.SearchVector(context.Background(), of("a"), "m", []float32{0, 1}, 2)
	if err != nil || len(hits) != 2 || hits[0].Chunk.N != 2 || hits[1].Chunk.N != 1 {
		t.Errorf("got %+v, %v", hits, err)
	}
}

func TestAChangeOfModelMixesNothing(t *testing.T) {
	url, prefix := searchServer(t), newPrefix()+t.Name()+":"
	ctx := context.Background()
	before := openAt(t, url, Options{Prefix: prefix, Model: "before", Dimensions: 2})
	upload(t, before, "a", "old", "before", "alpha")
	s := openAt(t, url, Options{Prefix: prefix, Model: "after", Dimensions: 2})
	if hits, err := s.SearchVector(ctx, of("a"), "after", []float32{1, 0}, 5); err != nil || len(hits) != 0 {
		t.Errorf("by vector: got %+v, %v", hits, err)
	}
	upload(t, s, "a", "new", "after", "alpha")
	hits, err := s.SearchVector(ctx, of("a"), "after", []float32{1, 0}, 5)
	if err != nil || len(hits) != 1 || hits[0].FileID != "new" {
		t.Errorf("by vector: got %+v, %v", hits, err)
	}
	if hits, err := s.SearchText(ctx, of("a"), []string{"alpha"}, 5); err != nil || len(hits) != 2 {
		t.Errorf("by words: got %+v, %v", hits, err)
	}
}

// bulk makes a reply of a search of strings, lists and nothing.
func bulk(items ...any) value {
	v := value{kind: '*'}
	for _, item := range items {
		switch item := item.(type) {
		case string:
			v.items = append(v.items, value{kind: '$', text: item})
		case int:
			v.items = append(v.items, value{kind: ':', text: "1"})
		case value:
			v.items = append(v.items, item)
		case nil:
			v.items = append(v.items, value{kind: '*', null: true})
		}
	}
	return v
}

// scripted opens a store whose searches are answered by reply, everything else
// by a server.
func scripted(t *testing.T, o Options, reply func() value) *Store {
	p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
		switch command.name() {
		case "FT.SEARCH":
			return reply(), nil
		case "FT.CREATE":
			return value{kind: '+', text: "OK"}, nil
		}
		return forward()
	})
	o.Prefix = newPrefix()
	return openAt(t, p.url(), o)
}

func TestRepliesOfSearchThatAreNoneAreNoHits(t *testing.T) {
	var reply value
	s := scripted(t, Options{}, func() value { return reply })
	upload(t, s, "a", "f", "m", "alpha")
	good := bulk("file", "f", "n", "0", "text", "alpha", "section", "", "page", "0", "tokens", "1")
	for name, c := range map[string]struct {
		reply value
		want  int // -1: an error
	}{
		"a hit":                          {bulk(1, "k", "1.5", good), 1},
		"none":                           {bulk(1), 0},
		"a document that went away":      {bulk(1, "k", "1.5", nil, "l", "1", good), 1},
		"a document of another kind":     {bulk(1, "k", "1.5", bulk("x", "y")), 0},
		"nothing but the tenant's":       {bulk(1, "k", "0", good), 0},
		"a field without a value":        {bulk(1, "k", "1", bulk("file")), -1},
		"an empty list":                  {bulk(), -1},
		"no number":                      {bulk("k"), -1},
		"no list":                        {value{kind: '+', text: "OK"}, -1},
		"a chunk whose number is a word": {bulk(1, "k", "1", bulk("file", "f", "n", "x", "page", "0", "tokens", "1")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			reply = c.reply
			hits, err := s.SearchText(context.Background(), of("a"), []string{"alpha"}, 5)
			if (err != nil) != (c.want < 0) || len(hits) != max(c.want, 0) {
				t.Errorf("got %+v, %v", hits, err)
			}
		})
	}
}

// The time that a search has is the server's to measure: there it may have waited
// for others.
func TestASearchThatTakesTooLongIsAnErrorOfTheServers(t *testing.T) {
	var reply value
	release := make(chan bool)
	s := scripted(t, Options{SearchTimeout: time.Millisecond}, func() value {
		<-release
		return reply
	})
	search := func() error {
		result := make(chan error)
		go func() {
			_, err := s.SearchText(context.Background(), of("a"), []string{"alpha"}, 5)
			result <- err
		}()
		begun := time.Now()
		for time.Since(begun) < 5*time.Millisecond { // longer than it has
			runtime.Gosched()
		}
		release <- true
		return <-result
	}
	if reply = bulk(1); search() != nil {
		t.Error("a search that waited was thrown away")
	}
	reply = value{kind: '-', text: "SEARCH_TIMEOUT Timeout limit was reached"}
	if err := search(); err == nil || !strings.Contains(err.Error(), "took longer than it may") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsOfSearchDontQuoteTheQuestion(t *testing.T) {
	s := scripted(t, Options{}, func() value {
		return value{kind: '-', text: "ERR unknown command 'FT.SEARCH', with args beginning with: 'idx' 'secret question'"}
	})
	_, err := s.SearchText(context.Background(), of("a"), []string{"alpha"}, 5)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestWordsAreTheSameOnBothSides(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"alpha beta alpha":                "alpha beta alpha",
		"hello-world don’t “quoted” a—b":  "hello world don t quoted a b",
		"日本 本語 привет":                    "日本 本語 привет",
		"x_y _ __ 42 cafe\u0301":          "x_y 42 cafe\u0301",
		"a\x00b\xffc":                     "a b c",
		strings.Repeat("x", 1000) + " y":  "y",
		`fox)|(@tenant:{beta} $t ~dog -x`: "fox tenant beta t dog x",
		"refunds refunded policies sky's": "refunds refunded policies sky s",
	} {
		if got := indexed(text); got != want {
			t.Errorf("%.40q is indexed as %q, want %q", text, got, want)
		}
		unique := make(map[string]bool)
		for _, word := range strings.Fields(stems(want)) {
			unique[word] = true
		}
		for _, word := range words([]string{text, text}) {
			if !unique[word] {
				t.Errorf("%.40q is asked for as %q", text, word)
			}
			delete(unique, word)
		}
		if len(unique) > 0 {
			t.Errorf("%.40q isn't asked for %v", text, unique)
		}
	}
}
