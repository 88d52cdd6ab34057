package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

func TestOpenCreatesWhatIsMissingForTheOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "backstory.db")
	s := openAt(t, path, Options{})
	if err := s.PutKey(context.Background(), store.Key{Tenant: "a"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		filepath.Dir(path): os.ModeDir | 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600, path + "-lock": 0o600,
	} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func TestOpenSetsUpItsConnections(t *testing.T) {
	for synchronous, level := range map[Synchronous]string{Full: "2", Normal: "1"} {
		s := openAt(t, filepath.Join(t.TempDir(), "backstory.db"), Options{Synchronous: synchronous})
		for pragma, want := range map[string]string{
			"busy_timeout": "10000", "auto_vacuum": "2", "journal_mode": "wal", "synchronous": level, "foreign_keys": "1",
			"temp_store": "2", "mmap_size": "0", "wal_autocheckpoint": "4000", "journal_size_limit": "67108864", "user_version": "7",
		} {
			var reader, writer string
			if err := s.row(context.Background(), `PRAGMA `+pragma).Scan(&reader); err != nil || reader != want {
				t.Errorf("a reader has %s = %s, %v; want %s", pragma, reader, err, want)
			}
			err := s.writer.write(context.Background(), 1, func(c *conn) error { return c.row(`PRAGMA ` + pragma).Scan(&writer) })
			if err != nil || writer != want {
				t.Errorf("the writer has %s = %s, %v; want %s", pragma, writer, err, want)
			}
		}
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "100%25.db", "a?b=c.db", "a#b.db", "é日.db", ":memory:", "file:x", "-", "a'b\".db"} {
		path := filepath.Join(dir, name)
		s := openAt(t, path, Options{})
		if err := s.PutKey(context.Background(), store.Key{Tenant: "a", Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s = openAt(t, path, Options{})
		if keys, err := s.ListKeys(context.Background(), "a"); err != nil || len(keys) != 1 || keys[0].Name != name {
			t.Errorf("%s: got %v, %v", name, keys, err)
		}
	}
}

func TestOpenFollowsALink(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(filepath.Join(dir, "real.db"), link); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, link, Options{})
	if err := errors.Join(saveOne(s, "s", "e1"), s.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "real.db-wal")); err != nil {
		t.Error(err)
	}
}

func TestOpenTakesARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	openAt(t, ":memory:", Options{})
	if _, err := os.Stat(":memory:"); err != nil {
		t.Error(err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, path string)
		want    string
	}{
		"a directory": {func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "it is a directory"},
		"a folder that is a file": {func(t *testing.T, path string) {
			if err := os.RemoveAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Dir(path), "x")
		}, "not a directory"},
		"not a database": {func(t *testing.T, path string) {
			write(t, path, strings.Repeat("this is a letter, and no database. ", 100))
		}, "isn't a SQLite database"},
		"another application's": {func(t *testing.T, path string) {
			run(t, path, `CREATE TABLE bookmarks (id)`)
		}, "another application"},
		"a newer version": {func(t *testing.T, path string) {
			if err := openAt(t, path, Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			run(t, path, `PRAGMA user_version = 99`)
		}, "schema is version 99"},
		"no permission": {func(t *testing.T, path string) {
			if os.Geteuid() == 0 {
				t.Skip("root may write anything")
			}
			write(t, path, "")
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}, "can't be written"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "backstory.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			c.prepare(t, path)
			s, err := Open(context.Background(), path, Options{})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %q, want %q and the path", err, c.want)
			}
		})
	}
	if _, err := Open(context.Background(), filepath.Join(t.TempDir(), "x"), Options{Synchronous: "off"}); err == nil {
		t.Error("an unknown level of synchronous was accepted")
	}
}

func TestMigrationsStartFromAnEmptyFile(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, path string){
		"no file":           func(*testing.T, string) {},
		"no bytes":          func(t *testing.T, path string) { write(t, path, "") },
		"no tables":         func(t *testing.T, path string) { run(t, path, `PRAGMA journal_mode = WAL`) },
		"a current version": func(t *testing.T, path string) { _ = openAt(t, path, Options{}).Close() },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backstory.db")
			prepare(t, path)
			s := openAt(t, path, Options{})
			if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: "s", Exchange: store.Exchange{ID: "e"}, Anyway: true}); err != nil {
				t.Error(err)
			}
			sound(t, s)
		})
	}
}

// run changes the file at path from outside.
func run(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("PRAGMA busy_timeout = 10000;" + statement) // the store may be tidying up
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAFileOfBeforeExchangesHadParentsOpens makes a file with the migrations that
// there were then, and an exchange as it was written then.
func TestAFileOfBeforeExchangesHadParentsOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	scripts, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range scripts[:5] {
		script, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(script)
	}
	want := sample("e1")
	array, meta := store.EncodeMessages(want.Messages)
	run(t, path, all.String()+fmt.Sprintf(`
		INSERT INTO tenants (id, name) VALUES (1, 'a');
		INSERT INTO sessions (id, tenant, digest, name, created, updated, touched, seq, messages, tokens, appended) VALUES (1, 1, x'%x', 's', 1, 2, 1, 1, 2, 400, 400);
		INSERT INTO bodies (id, messages) VALUES (1, x'%x');
		INSERT INTO exchanges (id, session, name, position, created, model, finish, hidden, carried, passages, count, tokens, meta, body)
			VALUES (1 << 32 | 1, 1, 'e1', 0, %d, '%s', 'stop', 0, zeroblob(16), NULL, 2, 400, x'%x', 1);
		PRAGMA application_id = %d;
		PRAGMA user_version = 5;`, sessionDigest("s"), array, want.Created.UnixMilli(), want.Model, meta, applicationID))
	s := openAt(t, path, Options{})
	next := sample("e2")
	next.Parent = "e0"
	if _, err := s.Append(t.Context(), store.Append{Scope: of("a"), Session: "s", Exchange: next, Mark: store.Mark{Seq: 1}}); err != nil {
		t.Fatal(err)
	}
	list, err := s.Exchanges(t.Context(), of("a"), "s", 0, 10, store.Ascending)
	if err != nil || len(list) != 2 || list[0].Parent != "" || list[1].Parent != "e0" {
		t.Fatalf("got %+v, %v", list, err)
	}
	got := list[0]
	got.Seq, got.Created = 0, want.Created
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	sound(t, s)
}

func TestAFileThatThisProcessHasOpenIsNotOpenElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	for range 2 { // as over a reload
		if openAt(t, path, Options{}).OpenElsewhere() {
			t.Error("this process took itself for another")
		}
	}
}
