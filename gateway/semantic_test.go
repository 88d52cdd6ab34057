package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/backstory-proxy/backstory/gateway"
	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

// understanding is a router's embedding model that knows two ideas. It keeps the
// texts that it was asked about, call by call.
type understanding struct {
	mu     sync.Mutex
	calls  [][]string
	status int // where set, it refuses
}

var (
	aboutBoats = []string{"boat", "корабле", "moor"}
	aboutFood  = []string{"food", "dinner"}
)

func (u *understanding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/embeddings") {
		http.NotFound(w, r)
		return
	}
	var texts []string
	data := []any{}
	for i, input := range gjson.GetBytes(body, "input").Array() {
		texts = append(texts, input.Str)
		vector := []float32{0, 0, .05}
		for n, words := range [][]string{aboutBoats, aboutFood} {
			if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(input.Str, word) }) {
				vector[n] = 1
			}
		}
		data = append(data, map[string]any{"index": i, "embedding": vector})
	}
	u.mu.Lock()
	u.calls = append(u.calls, texts)
	status := u.status
	u.mu.Unlock()
	if status != 0 {
		http.Error(w, "no", status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// take returns what was asked since the last time: the questions, the exchanges,
// and in how many calls.
func (u *understanding) take() (questions, exchanges []string, calls int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, texts := range u.calls {
		for _, text := range texts {
			if strings.HasPrefix(text, "user: ") {
				exchanges = append(exchanges, text)
			} else {
				questions = append(questions, text)
			}
		}
	}
	calls = len(u.calls)
	u.calls = nil
	return questions, exchanges, calls
}

func (u *understanding) refuse(status int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status = status
}

// withMeaning has sessions be searched by semantic similarity, too.
func withMeaning(o *gateway.Options) {
	small(o)
	o.Embedder = routerEmbedder("test/understanding", 3)
}

// paraphrase asks for what talk says of a boat in words that recall doesn't know.
const paraphrase = "О каком корабле я рассказывал?"

// kept is how many exchanges of a session have a vector in the database.
func kept(t *testing.T, path, session string) int {
	t.Helper()
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	seqs := make([]int64, 100)
	for i := range seqs {
		seqs[i] = int64(i)
	}
	list, err := db.Vectors(context.Background(), store.Scope{Tenant: "acme"}, session, seqs)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func different(texts []string) int { return len(slices.Compact(slices.Sorted(slices.Values(texts)))) }

func TestMessagesAreRecalledByMeaning(t *testing.T) {
	t.Parallel()
	upstream, u := newFake(t), new(understanding)
	upstream.other = u.ServeHTTP
	path := filepath.Join(t.TempDir(), "backstory.db")
	meaning := options{upstream: upstream.URL, adjust: withMeaning, store: database(path)}
	s := start(t, meaning)
	ask := func(want bool) {
		t.Helper()
		for _, extra := range []string{`"sessionId":"s","saveToMemory":false`, `"sessionId":"s","saveToMemory":false,"useRAG":false`} {
			s.chat(acme, paraphrase, extra)
			if got := lastUser(upstream.last(t)); strings.Contains(got, "Marianne") != want {
				t.Errorf("the model was asked %q", got)
			}
		}
	}

	for range 3 {
		s.chat(acme, "a short one", `"sessionId":"short"`)
	}
	if _, _, calls := u.take(); calls != 0 {
		t.Errorf("%d embedding calls for a session that fits", calls)
	}
	s.talk(upstream, "s")
	questions, exchanges, calls := u.take()
	if n := different(exchanges); n < 10 || n > 20 || calls > 2*len(questions) {
		t.Errorf("%d calls for %d questions and %d exchanges", calls, len(questions), n)
	}
	if exchanges[0] != "user: By the way, my boat is called Marianne and lies in Porto.\nassistant: ok" {
		t.Errorf("embedded %q", exchanges[0])
	}
	ask(true)
	_, more, _ := u.take()
	exchanges = append(exchanges, more...)
	if n := different(exchanges); n != len(exchanges) {
		t.Errorf("%d exchanges were embedded %d times", n, len(exchanges))
	}

	eventually(t, "all vectors are kept", func() bool { return kept(t, path, "s") == len(exchanges) })
	s.load(meaning)
	ask(true)
	if questions, again, _ := u.take(); len(questions) != 1 || len(again) != 0 {
		t.Errorf("after a restart, %d exchanges were embedded again, and the question %d times", len(again), len(questions))
	}

	off := func(o *gateway.Options) { withMeaning(o); o.Context.DisableRecall = true }
	s.load(options{upstream: upstream.URL, adjust: off, store: meaning.store})
	ask(false)
	s.load(options{upstream: upstream.URL, adjust: small, store: meaning.store})
	ask(false)
	if _, _, calls := u.take(); calls != 0 {
		t.Errorf("%d embedding calls with recall off, or without an embedder", calls)
	}

	s.load(meaning)
	s.ok(s.do(s.request("DELETE", "/sessions/s", acme, nil)))
	if n := kept(t, path, "s"); n != 0 {
		t.Errorf("%d vectors outlive their session", n)
	}
}

func TestNothingIsSearchedForWhereNothingCanBeQuoted(t *testing.T) {
	t.Parallel()
	upstream, u := newFake(t), new(understanding)
	upstream.other = u.ServeHTTP
	s := start(t, options{upstream: upstream.URL, adjust: func(o *gateway.Options) {
		withMeaning(o)
		o.Context.MaxAddedTokens = 30 // less than what frames quotes
	}})
	for range 4 {
		s.chat(acme, strings.Repeat("nothing much ", 30), `"sessionId":"s"`)
	}
	if questions, exchanges, calls := u.take(); calls != 0 {
		t.Errorf("%d questions and %d exchanges were embedded", len(questions), len(exchanges))
	}
}

func TestFilesAndMemoryShareTheQuestionsEmbedding(t *testing.T) {
	t.Parallel()
	upstream, u := newFake(t), new(understanding)
	upstream.other = u.ServeHTTP
	s := start(t, options{upstream: upstream.URL, adjust: withMeaning})
	s.talk(upstream, "s")
	s.ok(s.upload(acme, "a.md", "Nothing is said here."))
	u.take()
	r := s.chat(acme, paraphrase, `"sessionId":"s","saveToMemory":false`)
	if questions, _, _ := u.take(); len(questions) != 1 || r.get("_metadata.rag.degraded").Exists() || !r.get("_metadata.rag.enabled").Bool() {
		t.Errorf("embedded %q; %s", questions, r.body)
	}
}

func TestARouterThatRefusesEmbeddingsDoesNotStandInTheWay(t *testing.T) {
	upstream, u := newFake(t), new(understanding)
	upstream.other = u.ServeHTTP
	u.refuse(http.StatusInternalServerError)
	s := start(t, options{upstream: upstream.URL, adjust: withMeaning})
	s.talk(upstream, "s")
	before := s.scrape()
	s.chat(acme, "Where does my boat lie?", `"sessionId":"s","saveToMemory":false`)
	if got := lastUser(upstream.last(t)); !strings.Contains(got, "Marianne") {
		t.Errorf("the model was asked %q", got)
	}
	if n := s.scrape().since(before)[`backstory_degraded_searches_total{part="embedding"}`]; n != 1 {
		t.Errorf("counted %v degraded searches", n)
	}
	log := s.logged()
	if n := strings.Count(log, "could not be searched by semantic similarity"); n < 10 {
		t.Errorf("%d lines in the log", n)
	}
	for _, secret := range []string{"Marianne", "my boat", router, `"s"`} {
		if strings.Contains(log, secret) {
			t.Errorf("the log tells %s", secret)
		}
	}
	// The session, which is long, isn't sent again at once; questions are.
	u.refuse(0)
	u.take()
	s.chat(acme, paraphrase, `"sessionId":"s","saveToMemory":false`)
	if questions, exchanges, _ := u.take(); len(questions) != 1 || len(exchanges) != 0 {
		t.Errorf("embedded %d questions and %d exchanges", len(questions), len(exchanges))
	}
}
