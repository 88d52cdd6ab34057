package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// found lists the hits as file/chunk, separated by spaces.
func found(hits []store.Hit) string {
	var all []string
	for _, h := range hits {
		all = append(all, fmt.Sprintf("%s/%d", h.FileID, h.Chunk.N))
	}
	return strings.Join(all, " ")
}

func (f *fixture) text(tenant string, limit int, terms ...string) string {
	f.Helper()
	hits, err := f.SearchText(context.Background(), of(tenant), terms, limit)
	f.ok(err)
	return found(hits)
}

func (f *fixture) vector(tenant, model string, limit int, v ...float32) string {
	f.Helper()
	hits, err := f.SearchVector(context.Background(), of(tenant), model, v, limit)
	f.ok(err)
	return found(hits)
}

// both is a chunk that SearchText finds by "alpha" and SearchVector by (1, 0).
func both(n int) store.Chunk {
	return store.Chunk{N: n, Text: "Alpha", Terms: "alpha", Vector: []float32{1, 0}}
}

func testChunks(t *testing.T, b Backend) {
	ctx := context.Background()
	search := func(f *fixture, tenant string) string {
		f.Helper()
		text, vector := f.text(tenant, 10, "alpha"), f.vector(tenant, "m", 10, 1, 0)
		if text != vector {
			f.Fatalf("by text %q, by vector %q", text, vector)
		}
		return text
	}
	b.each(t, map[string]func(*fixture){
		"a hit tells all of its chunk": func(f *fixture) {
			c := store.Chunk{
				N: 3, Text: "Alpha é \x00 <b>", Terms: "alpha b", Section: "One > Two", Page: 12, Tokens: 7, Vector: []float32{0.6, 0.8},
			}
			f.upload("a", "f1", "m", []store.Chunk{c})
			byText, err := f.SearchText(ctx, of("a"), []string{"alpha"}, 5)
			f.ok(err)
			byVector, err := f.SearchVector(ctx, of("a"), "m", []float32{1, 0}, 5)
			f.ok(err)
			byName, err := f.Chunks(ctx, of("a"), []store.ChunkRef{{FileID: "f1", N: 3}})
			f.ok(err)
			c.Vector, c.Terms = nil, ""
			for i, hits := range [][]store.Hit{byText, byVector, byName} {
				if len(hits) != 1 {
					f.Fatalf("way %d: got %+v", i, hits)
				}
				h := hits[0]
				if i == 1 && math.Abs(h.Score-0.6) > 1e-5 || i == 2 && h.Score != 0 {
					f.Errorf("way %d: its score is %v", i, h.Score)
				}
				h.Score = 0
				if want := (store.Hit{FileID: "f1", Filename: "f1.txt", Chunk: c}); !reflect.DeepEqual(h, want) {
					f.Errorf("way %d: got %+v, want %+v", i, h, want)
				}
			}
		},
		"chunks are found when their file is processed, all together": func(f *fixture) {
			_, err := f.CreateFile(ctx, of("a"), document("f1", "m"), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f1", []store.Chunk{both(0), both(1)}))
			f.ok(f.AddChunks(ctx, of("a"), "f1", []store.Chunk{both(2)}))
			if got := search(f, "a"); got != "" {
				f.Errorf("before: got %q", got)
			}
			f.ok(f.FinishFile(ctx, of("a"), "f1", store.FileProcessed, ""))
			if got := search(f, "a"); got != "f1/0 f1/1 f1/2" {
				f.Errorf("after: got %q", got)
			}
		},
		"tenants find their own chunks only": func(f *fixture) {
			for _, tenant := range []string{"a", "b", "c"} {
				f.upload(tenant, "of-"+tenant, "m", []store.Chunk{both(0)})
			}
			for tenant, want := range map[string]string{"a": "of-a/0", "b": "of-b/0", "c": "of-c/0", "d": "", "": ""} {
				if got := search(f, tenant); got != want {
					f.Errorf("tenant %q: got %q, want %q", tenant, got, want)
				}
			}
		},
		"nothing is found of a file that was deleted or has failed": func(f *fixture) {
			for _, id := range []string{"f1", "f2", "f3"} {
				f.upload("a", id, "m", []store.Chunk{both(0), both(1)})
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f2"))
			f.ok(f.FinishFile(ctx, of("a"), "f3", store.FileError, "withdrawn"))
			if got := search(f, "a"); got != "f1/0 f1/1" {
				f.Errorf("got %q", got)
			}
			f.upload("a", "f4", "m", []store.Chunk{both(0)})
			if got := search(f, "a"); got != "f1/0 f1/1 f4/0" {
				f.Errorf("after another upload: got %q", got)
			}
		},
		"a large upload crowds nothing out": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{{Text: "Alpha and more", Terms: "alpha and more", Vector: []float32{0.6, 0.8}}})
			_, err := f.CreateFile(ctx, of("a"), document("f2", "m"), strings.NewReader("x"))
			f.ok(err)
			chunks := make([]store.Chunk, 300) // each a better match
			for i := range chunks {
				chunks[i] = both(i)
			}
			f.ok(f.AddChunks(ctx, of("a"), "f2", chunks))
			if got := f.text("a", 2, "alpha"); got != "f1/0" {
				f.Errorf("by text: got %q", got)
			}
			if got := f.vector("a", "m", 2, 1, 0); got != "f1/0" {
				f.Errorf("by vector: got %q", got)
			}
			f.ok(f.FinishFile(ctx, of("a"), "f2", store.FileError, "broken"))
			if got := search(f, "a"); got != "f1/0" {
				f.Errorf("after it has failed: got %q", got)
			}
		},
		"a large file is deleted whole": func(f *fixture) {
			chunks := make([]store.Chunk, 300)
			for i := range chunks {
				chunks[i] = both(i)
			}
			f.upload("a", "f1", "m", chunks)
			f.upload("a", "f2", "m", chunks[:1])
			f.ok(f.DeleteFile(ctx, of("a"), "f1"))
			if got := search(f, "a"); got != "f2/0" {
				f.Errorf("got %q", got)
			}
		},
		"chunks are fetched by name, in the order asked for": func(f *fixture) {
			f.upload("a", "f1", "", words("zero", "one", "two"))
			f.upload("a", "f2", "", words("other"))
			f.upload("b", "f3", "", words("of b"))
			_, err := f.CreateFile(ctx, of("a"), document("f4", ""), strings.NewReader("x"))
			f.ok(err)
			f.ok(f.AddChunks(ctx, of("a"), "f4", words("not yet")))
			hits, err := f.Chunks(ctx, of("a"), []store.ChunkRef{
				{FileID: "f1", N: 2}, {FileID: "f4", N: 0}, {FileID: "f2", N: 0}, {FileID: "f3", N: 0}, {FileID: "f1", N: 9}, {FileID: "f1", N: 0}, {FileID: "", N: 0},
			})
			f.ok(err)
			if got := found(hits); got != "f1/2 f2/0 f1/0" {
				f.Errorf("got %q", got)
			}
			f.ok(f.DeleteFile(ctx, of("a"), "f2"))
			for tenant, refs := range map[string][]store.ChunkRef{"a": {{FileID: "f2", N: 0}}, "nobody": {{FileID: "f1", N: 0}}, "b": nil} {
				if hits, err := f.Chunks(ctx, of(tenant), refs); err != nil || len(hits) != 0 {
					f.Errorf("tenant %s: got %v, %v", tenant, hits, err)
				}
			}
		},
	})
}

func testText(t *testing.T, b Backend) {
	b.each(t, map[string]func(*fixture){
		"any of the terms will do, and more of them rank higher": func(f *fixture) {
			texts := []string{"red green pink", "red blue pink", "white", "blue pink brown", "green red blue"}
			for i := range 15 { // so that none is in most of the chunks
				texts = append(texts, fmt.Sprint("noise number", i))
			}
			f.upload("a", "f1", "", words(texts...))
			if got := f.text("a", 10, "red", "green", "blue"); !strings.HasPrefix(got, "f1/4 ") || len(strings.Fields(got)) != 4 || strings.Contains(got, "f1/2") {
				f.Errorf("got %q", got)
			}
			if got := f.text("a", 10, "absent", "white"); got != "f1/2" {
				f.Errorf("got %q", got)
			}
			if got := f.text("a", 10, "absent"); got != "" {
				f.Errorf("got %q", got)
			}
		},
		"forms of an English word are one word": func(f *fixture) {
			f.upload("a", "f1", "", words("the refund was generous", "refunding policies", "white", "brown", "green"))
			for _, form := range []string{"refund", "refunds", "refunded"} {
				if got := f.text("a", 10, form); len(strings.Fields(got)) != 2 {
					f.Errorf("%s: got %q", form, got)
				}
			}
			if got := f.text("a", 10, "policy"); got != "f1/1" {
				f.Errorf("got %q", got)
			}
		},
		"rare terms, short chunks and repetition rank higher": func(f *fixture) {
			filler := strings.Repeat(" filler", 60)
			texts := []string{"common rare", "common" + filler, "common", "common common" + filler}
			for i := range 12 {
				texts = append(texts, fmt.Sprintf("noise number%d", i))
			}
			f.upload("a", "f1", "", words(texts...))
			if got := f.text("a", 1, "common", "rare"); got != "f1/0" {
				f.Errorf("rare: got %q", got)
			}
			got := strings.Fields(f.text("a", 10, "common"))
			if slices.Index(got, "f1/2") > slices.Index(got, "f1/1") || slices.Index(got, "f1/3") > slices.Index(got, "f1/1") || len(got) != 4 {
				f.Errorf("got %q", got)
			}
		},
		"scores fall, and the limit holds": func(f *fixture) {
			f.upload("a", "f1", "", words("a1 b1", "a1", "a1 b1 c1", "a1 x1 y1 z1", "b1"))
			hits, err := f.SearchText(context.Background(), of("a"), []string{"a1", "b1"}, 3)
			f.ok(err)
			if len(hits) != 3 || !slices.IsSortedFunc(hits, func(x, y store.Hit) int { return cmp.Compare(y.Score, x.Score) }) || hits[0].Score <= 0 {
				f.Errorf("got %+v", hits)
			}
			for _, limit := range []int{0, -1} {
				if got := f.text("a", limit, "a1"); got != "" {
					f.Errorf("limit %d: got %q", limit, got)
				}
			}
		},
		"terms of other scripts are found": func(f *fixture) {
			f.upload("a", "f1", "", words("привет мир", "日本 本語", "straße", "x2 42"))
			for term, want := range map[string]string{"мир": "f1/0", "本語": "f1/1", "straße": "f1/2", "42": "f1/3"} {
				if got := f.text("a", 10, term); got != want {
					f.Errorf("%q: got %q, want %q", term, got, want)
				}
			}
		},
		"without terms nothing is found": func(f *fixture) {
			f.upload("a", "f1", "", words("alpha"))
			if got := f.text("a", 10) + f.text("a", 10, "") + f.text("a", 10, "", " "); got != "" {
				f.Errorf("got %q", got)
			}
		},
		"terms are data, whatever they hold": func(f *fixture) {
			f.upload("a", "f1", "", words("alpha or near not and beta"))
			f.upload("b", "f2", "", words("alpha secret"))
			for _, hostile := range []string{
				`"`, `""`, `"""`, `'`, `''`, `*`, `a*`, `OR`, `AND`, `NOT`, `NEAR`, `NEAR(a b)`, `^`, `^a`, `-`, `-x`, `+`, `(`, `)`, `((`, `:`,
				`terms:alpha2`, `{`, `}`, `{a}:x`, `|`, `~`, `%`, `$`, `@tenant`, `@tenant:{b}`, `[0 1]`, `\`, `\"`, `x" OR "secret`, `secret`, `; DROP TABLE chunks`,
				"", " ", "\t\n", "\x00", "x\x00y", "\x00\"", "\xff", "é\xff", "🦊", strings.Repeat("x", 100_000), strings.Repeat(`"`, 1001),
			} {
				got := f.text("a", 10, hostile)
				if strings.Contains(got, "f2") {
					f.Errorf("%.40q found %q of another tenant", hostile, got)
				}
				if got := f.text("a", 10, hostile, "beta"); got != "f1/0" {
					f.Errorf("%.40q and beta: got %q", hostile, got)
				}
			}
			for _, word := range []string{"or", "near", "not", "and"} {
				if got := f.text("a", 10, word); got != "f1/0" {
					f.Errorf("%q: got %q", word, got)
				}
			}
		},
		"there may be many terms": func(f *fixture) {
			f.upload("a", "f1", "", words("alpha"))
			terms := make([]string, 3000)
			for i := range terms {
				terms[i] = fmt.Sprint("term", i)
			}
			if got := f.text("a", 10, append(terms, "alpha")...); got != "f1/0" {
				f.Errorf("got %q", got)
			}
		},
	})
}

func testVector(t *testing.T, b Backend) {
	ctx := context.Background()
	b.each(t, map[string]func(*fixture){
		"the order is that of the cosines": testNearest,
		"only chunks of the model are compared": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{both(0)})
			f.upload("a", "f2", "other", []store.Chunk{both(0)})
			f.upload("a", "f3", "", words("alpha"))
			for model, want := range map[string]string{"m": "f1/0", "other": "f2/0", "unknown": "", "": "", "M": "", "m ": ""} {
				if got := f.vector("a", model, 10, 1, 0); got != want {
					f.Errorf("model %q: got %q, want %q", model, got, want)
				}
			}
		},
		"chunks without a vector are found by their words alone": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{both(0), {N: 1, Text: "Alpha", Terms: "alpha"}})
			if got := f.vector("a", "m", 10, 1, 0); got != "f1/0" {
				f.Errorf("by vector: got %q", got)
			}
			if got := f.text("a", 10, "alpha"); len(strings.Fields(got)) != 2 {
				f.Errorf("by words: got %q", got)
			}
		},
		"a vector of other dimensions finds nothing, and breaks nothing": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{both(0)})
			for _, v := range [][]float32{nil, {1}, {1, 0, 0}, make([]float32, 5000)} {
				if hits, err := f.SearchVector(ctx, of("a"), "m", v, 10); err == nil && len(hits) > 0 {
					f.Errorf("%d dimensions: got %+v", len(v), hits)
				}
			}
			if got := f.vector("a", "m", 10, 1, 0); got != "f1/0" {
				f.Errorf("after that: got %q", got)
			}
		},
		"the limit holds": func(f *fixture) {
			f.upload("a", "f1", "m", []store.Chunk{both(0), both(1), both(2)})
			for limit, want := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 2, 9: 3} {
				if got := len(strings.Fields(f.vector("a", "m", limit, 1, 0))); got != want {
					f.Errorf("limit %d: got %d", limit, got)
				}
			}
		},
	})
}

// testNearest compares the search with one that computes every cosine.
func testNearest(f *fixture) {
	const dims, chunks, queries, limit = 37, 150, 20, 12
	random := rand.New(rand.NewPCG(3, 4))
	unit := func() []float32 {
		v := make([]float32, dims)
		var sum float64
		for i := range v {
			v[i] = float32(random.NormFloat64())
			sum += float64(v[i]) * float64(v[i])
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(sum))
		}
		return v
	}
	all := make([]store.Chunk, chunks)
	for i := range all {
		all[i] = store.Chunk{N: i, Text: "x", Terms: "x", Vector: unit()}
	}
	f.upload("a", "f", "m", all)
	for range queries {
		q := unit()
		cosine := func(n int) (sum float64) {
			for i, x := range all[n].Vector {
				sum += float64(x) * float64(q[i])
			}
			return sum
		}
		want := make([]int, chunks)
		for i := range want {
			want[i] = i
		}
		slices.SortFunc(want, func(a, b int) int { return cmp.Compare(cosine(b), cosine(a)) })
		hits, err := f.SearchVector(context.Background(), of("a"), "m", q, limit)
		f.ok(err)
		if len(hits) != limit {
			f.Fatalf("%d hits, want %d", len(hits), limit)
		}
		for i, h := range hits {
			// Rounding may swap two that are equal to six digits.
			if got, best := cosine(h.Chunk.N), cosine(want[i]); math.Abs(got-best) > 1e-6 || math.Abs(h.Score-got) > 1e-5 {
				f.Errorf("place %d: chunk %d of cosine %v, scored %v; want chunk %d of %v", i, h.Chunk.N, got, h.Score, want[i], best)
			}
		}
	}
}
