package caddymodule_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
)

const (
	benchModel = "openai/gpt-4o-mini"
	// fillTokens is what the filler says that a message takes.
	fillTokens = 160
)

// filler puts sessions into a store, side by side, so that they share commits.
type filler struct {
	b       *testing.B
	store   *sqlite.Store
	workers sync.WaitGroup
	slots   chan struct{}
}

func fillStore(b *testing.B, path string, fill func(*filler)) {
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		b.Fatal(err)
	}
	f := &filler{b: b, store: s, slots: make(chan struct{}, 64)}
	fill(f)
	f.workers.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	if b.Failed() {
		b.FailNow()
	}
}

// add adds a session of the tenant acme.
func (f *filler) add(session string, messages int) {
	f.slots <- struct{}{}
	f.workers.Go(func() {
		defer func() { <-f.slots }()
		for i := 0; i < messages; i += 2 {
			e := store.Exchange{
				ID: fmt.Sprint("e", i), Created: time.Now(), Model: benchModel, Finish: "stop",
				Messages: []store.Message{fillMessage(i), fillMessage(i + 1)},
			}
			if _, err := f.store.Append(context.Background(), store.Append{Scope: store.Scope{Tenant: "acme"}, Session: session, Exchange: e, Anyway: true}); err != nil {
				f.b.Error(err)
				return
			}
		}
	})
}

func fillMessage(i int) store.Message {
	m := store.Message{JSON: []byte(message(i)), Tokens: fillTokens}
	binary.BigEndian.PutUint64(m.Digest[:], uint64(i+1))
	return m
}

// message is the i-th message of every session: a user's or the assistant's, of
// about 100 bytes.
func message(i int) string {
	role := "user"
	if i%2 == 1 {
		role = "assistant"
	}
	return fmt.Sprintf(`{"role":%q,"content":"Message %d of a talk about the weather, and other news."}`, role, i)
}

// history are the messages of a session as they stand in a request.
func history(messages int) string {
	var b strings.Builder
	for i := range messages {
		b.WriteString(message(i) + ",")
	}
	return b.String()
}

// question is a request of about 1 KB, no two of which ask the same; more are
// other members of it.
func question(i int, history, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"model":%q,"messages":[%s{"role":"user","content":"Question %d. %s"}]%s}`,
		benchModel, history, i, filling, more)
}

var filling = strings.Repeat("Now is the time to ask, since nobody knows how long it takes. ", 15)
