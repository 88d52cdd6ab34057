package caddymodule_test

import (
	"bufio"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/tidwall/gjson"

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

// brief is the time to live of what isn't worth to be kept: rates.
const brief = 5 * time.Minute

// dumpRedis writes down all that a server holds, as commands that make it, one
// a line. Times to live are told as what is left of them.
func dumpRedis(t *testing.T, address string) []byte {
	c := goredis.NewClient(&goredis.Options{Addr: address})
	defer c.Close()
	ctx := t.Context()
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, key := range keys {
		ttl := c.PTTL(ctx, key).Val()
		if ttl > 0 && ttl < brief {
			continue
		}
		command := []string{}
		switch kind := c.Type(ctx, key).Val(); kind {
		case "string":
			command = append(command, "SET", key, c.Get(ctx, key).Val())
		case "hash":
			command = append(command, "HSET", key)
			all := c.HGetAll(ctx, key).Val()
			for _, field := range sortedKeys(all) {
				command = append(command, field, all[field])
			}
		case "list":
			command = append(append(command, "RPUSH", key), c.LRange(ctx, key, 0, -1).Val()...)
		case "set":
			command = append(append(command, "SADD", key), c.SMembers(ctx, key).Val()...)
		case "zset":
			command = append(command, "ZADD", key)
			for _, z := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
				command = append(command, fmt.Sprintf("%.17g", z.Score), z.Member.(string))
			}
		default:
			t.Fatalf("%s is a %s, which can't be written down", key, kind)
		}
		b.WriteString(line(command))
		if ttl > 0 {
			b.WriteString(line([]string{"PEXPIRE", key, fmt.Sprint(ttl.Milliseconds())}))
		}
	}
	return []byte(b.String())
}

// line writes a command as JSON: of bytes that are no UTF-8, as Latin-1.
func line(command []string) string {
	for i, word := range command {
		var latin []rune
		for _, b := range []byte(word) {
			latin = append(latin, rune(b))
		}
		command[i] = string(latin)
	}
	b, _ := json.Marshal(command)
	return string(b) + "\n"
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// month is where the name of a key tells the month whose usage it holds.
var month = regexp.MustCompile(`^(.*:usage:.*:)\d{4}-\d\d$`)

// loadRedis runs the commands. What was used in the month of the dump is used
// in this one.
func loadRedis(t *testing.T, address, path string) {
	c := goredis.NewClient(&goredis.Options{Addr: address})
	defer c.Close()
	in := bufio.NewScanner(strings.NewReader(string(fileAt(t, path))))
	in.Buffer(nil, 1<<20)
	n := 0
	for ; in.Scan(); n++ {
		var command []any
		for _, word := range gjson.ParseBytes(in.Bytes()).Array() {
			var b []byte
			for _, r := range word.Str {
				b = append(b, byte(r))
			}
			command = append(command, month.ReplaceAllString(string(b), "${1}"+time.Now().UTC().Format("2006-01")))
		}
		if err := c.Do(t.Context(), command...).Err(); err != nil {
			t.Fatalf("%s:%d: %v", path, n+1, err)
		}
	}
	if err := in.Err(); err != nil || n == 0 {
		t.Fatalf("%d commands: %v", n, err)
	}
}
