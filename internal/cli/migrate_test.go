package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/backstory-proxy/backstory/sqlite"
	"github.com/backstory-proxy/backstory/store"
	"github.com/backstory-proxy/backstory/store/migrate"
	"github.com/backstory-proxy/backstory/store/storetest"
)

// migrated runs the command with the output in buffers.
func migrated(t *testing.T, o migrateOptions) (out string, err error) {
	t.Helper()
	terminal, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	o.from.name, o.to.name, o.index = "--from", "--to", "hnsw"
	var b bytes.Buffer
	err = o.run(context.Background(), &b, terminal)
	return b.String(), err
}

func openFile(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMigrateCopiesAndVerifies(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from.db"), filepath.Join(folder, "to.db")
	s := openFile(t, from)
	storetest.Fill(t, s)
	if _, err := migrated(t, migrateOptions{from: endpoint{url: "sqlite:" + from}, to: endpoint{url: "sqlite:" + to}}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("of a store in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MIGRATE_TO", "sqlite:"+to)
	o := migrateOptions{from: endpoint{url: "sqlite:" + from}, to: endpoint{url: "env:MIGRATE_TO"}}
	for range 2 {
		out, err := migrated(t, o)
		if err != nil || !strings.Contains(out, "verified: the target matches the source") || !strings.Contains(out, "keys-only") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s = openFile(t, to)
	if _, err := s.Append(context.Background(), store.Append{Scope: store.Scope{Tenant: "acme"}, Session: "more", Exchange: store.Exchange{ID: "e"}, Anyway: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := migrated(t, o)
	if !errors.Is(err, errDiffers) || !strings.Contains(out, `tenant acme: session "more" is in the target only`) || !strings.Contains(out, "NOT VERIFIED: 1 differences") {
		t.Errorf("%v\n%s", err, out)
	}
	o.merge = true
	if out, err := migrated(t, o); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMigrateRefuses(t *testing.T) {
	folder := t.TempDir()
	there := filepath.Join(folder, "there.db")
	if err := openFile(t, there).Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BAD_URL", "redis://user:hunter2@host/too/much")
	for name, c := range map[string]struct{ from, to, want string }{
		"no source":             {"", "sqlite:" + there, "--from is missing"},
		"no target":             {"sqlite:" + there, "", "--to is missing"},
		"a source that isn't":   {"sqlite:" + folder + "/none.db", "sqlite:" + there, "--from: there is no store at"},
		"the same":              {"sqlite:" + there, "sqlite:" + folder + "/./there.db", "the same store"},
		"another scheme":        {"postgres://u:hunter2@host", "sqlite:" + there, "its scheme is"},
		"a variable, unset":     {"env:NO_SUCH_VARIABLE", "sqlite:" + there, "NO_SUCH_VARIABLE is not set"},
		"a bad URL":             {"env:BAD_URL", "sqlite:" + there, "too much in its path"},
		"nobody listening":      {"redis://u:hunter2@127.0.0.1:1", "sqlite:" + there, "refused"},
		"neither nor, password": {"u:hunter2@host", "sqlite:" + there, "write sqlite:<path>"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := migrated(t, migrateOptions{from: endpoint{url: c.from}, to: endpoint{url: c.to}})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error()+out, "hunter2") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(folder, "none.db")); err == nil {
		t.Error("a source that isn't there was created")
	}
}

func TestProgressIsALineOfText(t *testing.T) {
	var p migrate.Progress
	var pace pace
	if got := pace.text(time.Now(), &p); got != "" {
		t.Errorf("before it began: %q", got)
	}
}
