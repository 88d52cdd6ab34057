package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/backstory-proxy/backstory/memory"
	"github.com/backstory-proxy/backstory/openai"
	"github.com/backstory-proxy/backstory/store"
)

// contendedStore is a store in which others are faster so many times. Each time they
// save one more exchange.
type contendedStore struct {
	mu     sync.Mutex
	faster int
	log    []store.Exchange
	others []store.Exchange // what they save
	asked  []store.Append
	used   int64
	err    error
}

func (s *contendedStore) Append(_ context.Context, a store.Append) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, a)
	if s.err != nil {
		return 0, s.err
	}
	if s.faster > 0 {
		s.faster--
		e := s.others[len(s.log)]
		e.Seq = int64(len(s.log)) + 1
		s.log = append(s.log, e)
	}
	if seq := int64(len(s.log)); seq > a.Known() {
		return 0, &store.Conflict{Newer: s.log[a.Mark.Seq:], Seq: seq}
	}
	s.used += a.Usage.Tokens
	a.Exchange.Seq = int64(len(s.log)) + 1
	s.log = append(s.log, a.Exchange)
	return a.Exchange.Seq, nil
}

func (s *contendedStore) AddUsage(_ context.Context, _ store.Scope, u store.Used) error {
	s.used += u.Tokens
	return nil
}

func (s *contendedStore) Usage(context.Context, store.Scope, store.Month) (int64, error) {
	return s.used, nil
}

func draft(t *testing.T, conv string, closed bool) memory.Draft {
	t.Helper()
	r := newSession(t).ask(conv)
	d, save := r.completed(&openai.Reply{Message: message("a:ok"), Finish: "stop", HasText: true}, closed).Draft()
	if !save {
		t.Fatal("there is nothing to save")
	}
	return d
}

func saved(t *testing.T, conv string) []store.Exchange {
	t.Helper()
	return newSession(t).conversation(conv).log
}

func TestADraftIsSavedHoweverOftenOthersAreFaster(t *testing.T) {
	s := &contendedStore{faster: 3, others: saved(t, "u:V a:v | u:W a:w | u:A a:a")}
	d := draft(t, "u:A a:a u:B", false)
	seq, err := d.Save(t.Context(), s, store.Append{Session: "s", Usage: store.Used{Tokens: 7}})
	if err != nil || seq != 4 || len(s.log) != 4 {
		t.Fatalf("got %d, %v; %d exchanges", seq, err, len(s.log))
	}
	// What the third of the others has saved isn't saved again.
	if got := shorts(s.log[3].Messages); got != "u:B a:ok" {
		t.Errorf("saved %q", got)
	}
	if len(s.asked) != 4 || s.asked[3].Seen != 3 || s.asked[3].Mark.Seq != 0 || s.used != 7 {
		t.Errorf("%d tries, the last one %+v; %d tokens", len(s.asked), s.asked[len(s.asked)-1], s.used)
	}
	if got := shorts(d.Exchange.Messages); got != "u:A a:a u:B a:ok" {
		t.Errorf("the draft became %q", got)
	}
}

func TestOfADraftThatOthersSavedOnlyTheUsageIsLeft(t *testing.T) {
	// The client left, asked again, and got the whole reply.
	s := &contendedStore{faster: 1, others: saved(t, "u:X a:x")}
	d := draft(t, "u:X", true)
	seq, err := d.Save(t.Context(), s, store.Append{Session: "s", Usage: store.Used{Tokens: 7}})
	if err != nil || seq != 0 || len(s.log) != 1 || s.used != 7 {
		t.Errorf("got %d, %v; %d exchanges, %d tokens", seq, err, len(s.log), s.used)
	}
}

func TestAnErrorOfTheStoreEndsASave(t *testing.T) {
	s := &contendedStore{err: errors.New("down")}
	d := draft(t, "u:A", false)
	if _, err := d.Save(t.Context(), s, store.Append{Session: "s"}); !errors.Is(err, s.err) || len(s.asked) != 1 {
		t.Errorf("got %v after %d tries", err, len(s.asked))
	}
}

func TestManySavesAtOnceWaitForOneAnother(t *testing.T) {
	s := new(contendedStore)
	const saves = 40
	var all sync.WaitGroup
	for i := range saves {
		d := draft(t, fmt.Sprintf("u:%d", i), false)
		all.Go(func() {
			if _, err := d.Save(t.Context(), s, store.Append{Session: "s"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	// The first try, and in the queue one that shows who went before and one that succeeds.
	if len(s.log) != saves || len(s.asked) > 3*saves {
		t.Errorf("%d exchanges after %d tries", len(s.log), len(s.asked))
	}
}
