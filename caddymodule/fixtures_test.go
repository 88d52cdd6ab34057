package caddymodule_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/backstory-proxy/backstory/internal/redistest"
)

var updateFixtures = flag.String("update-fixtures", "", "make the data of testdata/fixtures/<this> anew, with the code as it is")

// The files of a fixture, beside its scripts. See testdata/fixtures/README.md.
const (
	fixtureSQLite  = "backstory.db"
	fixtureRedis   = "redis.jsonl"
	fixtureJournal = "journal.db"
	fixtureKey     = "%s.key" // of a store
)

// TestUpgrade opens data that earlier versions have left, and compares what a
// user sees of it, and goes on with, with what was recorded.
func TestUpgrade(t *testing.T) {
	dirs, err := filepath.Glob("testdata/fixtures/*/make.script")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			for _, kind := range []string{"sqlite", "redis"} {
				t.Run(kind, func(t *testing.T) {
					if *updateFixtures == filepath.Base(dir) {
						makeFixture(t, dir, kind)
						return
					}
					openFixture(t, dir, kind)
				})
			}
		})
	}
}

// scriptOf reads the scripts of a folder.
func scriptOf(t *testing.T, dir string, names ...string) *script {
	paths := []string{filepath.Join(dir, "settings.script")}
	for _, name := range names {
		paths = append(paths, filepath.Join(dir, name+".script"))
	}
	return readScript(t, paths...)
}

func makeFixture(t *testing.T, dir, kind string) {
	p := newPlayer(t, scriptOf(t, dir, "make", "make."+kind))
	p.o.admin = freeAddress(t)
	work := t.TempDir()
	if kind == "redis" {
		p.useRedis(redistest.Start(t), filepath.Join(work, fixtureJournal))
	} else {
		p.o.store = "sqlite " + filepath.Join(work, fixtureSQLite)
	}
	p.play()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	saveFile(t, filepath.Join(dir, fmt.Sprintf(fixtureKey, kind)), []byte(p.g.vars["key"]))
	if kind == "sqlite" {
		checkpoint(t, filepath.Join(work, fixtureSQLite))
		saveFile(t, filepath.Join(dir, fixtureSQLite), fileAt(t, filepath.Join(work, fixtureSQLite)))
		return
	}
	checkpoint(t, filepath.Join(work, fixtureJournal))
	saveFile(t, filepath.Join(dir, fixtureJournal), fileAt(t, filepath.Join(work, fixtureJournal)))
	p.redis.Restart()
	saveFile(t, filepath.Join(dir, fixtureRedis), dumpRedis(t, p.redis.Address))
}

func openFixture(t *testing.T, dir, kind string) {
	p := newPlayer(t, scriptOf(t, dir, "check."+kind, "check"))
	p.g.vars["key"] = string(fileAt(t, filepath.Join(dir, fmt.Sprintf(fixtureKey, kind))))
	work := t.TempDir()
	if kind == "redis" {
		server := redistest.Start(t)
		loadRedis(t, server.Address, filepath.Join(dir, fixtureRedis))
		journal := filepath.Join(work, fixtureJournal)
		saveFile(t, journal, fileAt(t, filepath.Join(dir, fixtureJournal)))
		// The server has another port here; and what waits for a month is too
		// old for the store.
		location := sha256.Sum256([]byte(fmt.Sprintf(`redis:["%s"] "" 0 "backstory:"`, server.Address)))
		change(t, journal, "UPDATE entries SET location = ?, added = ?", hex.EncodeToString(location[:8]), time.Now().UnixMilli())
		p.useRedis(server, journal)
	} else {
		database := filepath.Join(work, fixtureSQLite)
		saveFile(t, database, fileAt(t, filepath.Join(dir, fixtureSQLite)))
		now := time.Now().UTC()
		change(t, database, "UPDATE usage SET month = ?", now.Year()*12+int(now.Month())-1)
		p.o.store = "sqlite " + database
	}
	p.play()
	recorded := filepath.Join(dir, "check."+kind+".golden")
	if *update {
		saveFile(t, recorded, []byte(p.out.String()))
	}
	compare(t, string(fileAt(t, recorded)), p.out.String())
}

func fileAt(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func saveFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkpoint moves what is in a database's log into its file.
func checkpoint(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	eventually(t, "the database is closed", func() bool { // a configuration is cleaned up behind the caller's back
		busy, log, done := 1, 0, 0
		err := db.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
		return err == nil && busy == 0
	})
}

// change changes rows of a database, of which there must be some.
func change(t *testing.T, path, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	done, err := db.ExecContext(t.Context(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed nothing: %v", statement, err)
	}
}

// newKey makes a service key of acme, as an operator does.
func (p *player) newKey() string {
	r, err := http.Post("http://"+p.o.admin+"/backstory/keys", "application/json", strings.NewReader(`{"tenant":"acme","plan":"kept","name":"fixture"}`))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	var o struct{ Key string }
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Key == "" {
		p.t.Fatalf("no key: status %d, %v", r.StatusCode, err)
	}
	return o.Key
}
