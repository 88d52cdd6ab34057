package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/internal/porttest"
	"github.com/backstory-proxy/backstory/store"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	plain := sharedServer(t)
	// A server with the module, asked for another database.
	second := startProxy(t, plain.addr(), func(command value, forward func() (value, error)) (value, error) {
		if command.name() == "FT.CREATE" {
			return value{kind: '-', text: "Cannot create index on db != 0"}, nil
		}
		return forward()
	})
	port, err := porttest.Next()
	if err != nil {
		t.Fatal(err)
	}
	refused := fmt.Sprint("redis://127.0.0.1:", port)
	for name, c := range map[string]struct {
		url  string
		o    Options
		want string
	}{
		"refused":             {refused, Options{}, "connection was refused; is Redis running there?"},
		"no such host":        {"redis://no-such-host.invalid", Options{}, "no host no-such-host.invalid"},
		"no search module":    {plain.url(), Options{}, "Redis 8 or Redis Stack is needed for file search, unless files are off"},
		"another database":    {second.url() + "/1", Options{}, "database 0"},
		"no TLS there":        {"rediss://" + plain.addr(), Options{DialTimeout: 50 * time.Millisecond}, "TLS"},
		"no Cluster there":    {"redis+cluster://" + plain.addr(), Options{}, "isn't part of a Cluster"},
		"a prefix in braces":  {plain.url(), Options{Prefix: "{x}"}, "brace"},
		"an unknown index":    {plain.url(), Options{Algorithm: "TREE"}, `"TREE"`},
		"a negative timeout":  {plain.url(), Options{Timeout: -1}, "negative"},
		"a password to hide":  {"redis://user:hunter2@" + plain.addr(), Options{}, "user or password is wrong"},
		"a URL that is wrong": {"http://user:hunter2@h", Options{}, "scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			s, err := Open(ctx, c.url, c.o)
			if err == nil {
				_ = s.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v; want it to say %q", err, c.want)
			}
		})
	}
}

func TestOpenSaysWhoAnswersThere(t *testing.T) {
	plain := start(t)
	replica := start(t, "--replicaof", "127.0.0.1", strconv.Itoa(plain.port))
	members := startPrimaries(t, 3, 2*time.Second)
	awaitCluster(t, members)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, "sentinel monitor main 127.0.0.1 %d 1\nrequirepass hunter2\n", plain.port), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := startSentinel(t, config)
	for name, c := range map[string]struct{ url, want string }{
		"a replica":             {replica.url(), "the server is a replica"},
		"one node of a Cluster": {members[0].url(), "write redis+cluster://"},
		"no Sentinel":           {"redis+sentinel://" + plain.addr() + "/main", "no Sentinel"},
		"no such primary":       {"redis+sentinel://" + sentinel.addr() + "/other?sentinel_password=hunter2", `know no primary "other"`},
		"a Sentinel's password": {"redis+sentinel://" + sentinel.addr() + "/main", "sentinel_password"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(context.Background(), c.url, Options{NoFiles: true, Prefix: newPrefix()})
			if err == nil {
				_ = s.Close()
				t.Fatal("it opened")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v; want it to say %q", err, c.want)
			}
		})
	}
}

func TestWithoutFilesNoSearchModuleIsNeeded(t *testing.T) {
	s := openAt(t, sharedServer(t).url(), Options{Prefix: newPrefix(), NoFiles: true})
	ctx := context.Background()
	if _, err := s.CreateFile(ctx, of("a"), store.File{ID: "f"}, strings.NewReader("")); !errors.Is(err, store.ErrFilesOff) {
		t.Errorf("a file was created: %v", err)
	}
	if hits, err := s.SearchText(ctx, of("a"), []string{"x"}, 5); err != nil || len(hits) != 0 {
		t.Errorf("got %v, %v", hits, err)
	}
	if g, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1}); err != nil || g.Files {
		t.Errorf("got %+v, %v", g, err)
	}
}

func TestADeadServerIsAnErrorInTime(t *testing.T) {
	server := start(t)
	s := openAt(t, server.url(), Options{Prefix: newPrefix(), NoFiles: true})
	server.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	if _, err := s.Gather(ctx, store.GatherRequest{Scope: of("a"), Limit: 1}); err == nil || time.Since(begun) > 2*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}
