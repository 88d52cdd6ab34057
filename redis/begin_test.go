package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/internal/porttest"
	"github.com/backstory-proxy/backstory/internal/redistest"
	"github.com/backstory-proxy/backstory/store"
)

func TestAStoreWhoseServerComesLater(t *testing.T) {
	needServer(t)
	for name, away := range map[string]func(*redistest.Server) (back func()){
		"refused": func(s *redistest.Server) func() { s.Kill(); return s.Restart },
		"hanging": func(s *redistest.Server) func() { s.Freeze(); return s.Thaw },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			back := away(server)
			ctx := context.Background()
			o := Options{NoFiles: true, Timeout: 200 * time.Millisecond, DialTimeout: 200 * time.Millisecond}
			if s, err := Open(ctx, server.URL, o); err == nil {
				_ = s.Close()
				t.Fatal("one who doesn't wait got a store")
			}
			var events told
			o.Patient, o.Notify = true, events.take
			s := openAt(t, server.URL, o)
			gather := func() error {
				_, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 9})
				return err
			}
			begun := time.Now()
			if err := gather(); !errors.Is(err, store.ErrNotReady) || time.Since(begun) > o.Timeout/2 {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			if err := s.Ping(ctx); !errors.Is(err, store.ErrNotReady) {
				t.Errorf("ping: %v", err)
			}
			back()
			eventually(t, "it can be used", func(context.Context) (bool, error) { return gather() == nil, nil })
			if got := events.list(); got[0] != Waiting || got[len(got)-1] != Reached && got[len(got)-1] != Answers {
				t.Errorf("told were %v", got)
			}
			add(t, s, "s", "e")
		})
	}
}

// What waiting doesn't put right is an error at once.
func TestAPatientStoreRefusesWhatIsWrong(t *testing.T) {
	server := start(t, "--requirepass", "hunter2")
	plain := sharedServer(t)
	for name, c := range map[string]struct{ url, want string }{
		"no password":      {server.url(), "wants a password"},
		"a wrong password": {strings.Replace(server.url(), "://", "://:wrong@", 1), "password is wrong"},
		"no search module": {plain.url(), "no search module"},
		"a wrong scheme":   {"http://h", "scheme"},
		"no Cluster there": {strings.Replace(plain.url(), "redis:", "redis+cluster:", 1), "isn't part of a Cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), c.url, Options{Prefix: newPrefix(), Patient: true})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want it to say %q", err, c.want)
			}
		})
	}
}

// At its maxmemory a server still serves what a restarted proxy may do.
func TestAFullServerCanBeOpened(t *testing.T) {
	server := start(t)
	if err := server.client(t).ConfigSet(context.Background(), "maxmemory", "100kb").Err(); err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, server.addr(), func(command value, forward func() (value, error)) (value, error) {
		if command.name() == "FT.CREATE" {
			return value{kind: '-', text: "OOM command not allowed when used memory > 'maxmemory'."}, nil
		}
		return forward()
	})
	s := openAt(t, p.url(), Options{Prefix: newPrefix(), Model: "m", Dimensions: 3})
	if _, err := s.Exchanges(context.Background(), of("a"), "s", 0, 9, store.Ascending); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestAnOperatorIsToldOfSearchesThatHoldEveryoneUp(t *testing.T) {
	for workers, want := range map[string]int{"0": 1, "2": 0} {
		p := startProxy(t, sharedServer(t).addr(), func(command value, forward func() (value, error)) (value, error) {
			switch command.name() {
			case "FT.CREATE":
				return value{kind: '+', text: "OK"}, nil
			case "FT.CONFIG":
				return bulk(bulk("WORKERS", workers)), nil
			}
			return forward()
		})
		var events told
		openAt(t, p.url(), Options{Prefix: newPrefix(), Notify: events.take})
		eventually(t, "it looked for work left undone, which comes next", func(context.Context) (bool, error) { return p.saw("ZRANGE"), nil })
		if got := events.list(); len(got) != want {
			t.Errorf("with %s workers, told were %v", workers, got)
		}
	}
}

func TestServersThatArentThereAreAwaitedHoweverTheyAreNamed(t *testing.T) {
	port, err := porttest.Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"redis", "rediss", "redis+sentinel", "redis+cluster"} {
		url := fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
		if scheme == "redis+sentinel" {
			url += "/main"
		}
		s := openAt(t, url, Options{Patient: true, NoFiles: true})
		if err := s.Ping(context.Background()); !errors.Is(err, store.ErrNotReady) || !strings.Contains(err.Error(), "is Redis running there?") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
