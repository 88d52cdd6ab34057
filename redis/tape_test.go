package redis

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Tests of search run against a server with the search module where
// BACKSTORY_TEST_REDIS names one. With BACKSTORY_TEST_RECORD=1 what is said about
// search is written to testdata meanwhile. Elsewhere a redis-server without the
// module does the rest, and the answers about search are read from there.

const (
	serverVariable = "BACKSTORY_TEST_REDIS"
	recordVariable = "BACKSTORY_TEST_RECORD"
	tapeFile       = "testdata/search.txt"
	// canonical begins all keys on the tape, where those of a test begin with
	// a prefix of its own: on a server that others use too, nothing of theirs is
	// touched.
	canonical = "test:"
	// longArgument is how much of an argument the tape shows.
	longArgument = 1024
)

// process begins all prefixes of a process.
var process = "test-" + rand.Text()[:8] + "-"

var (
	prefixes      atomic.Int64
	prefixPattern = regexp.MustCompile(regexp.QuoteMeta(process) + `\d+:`)
)

// newPrefix returns a prefix under which there is nothing.
func newPrefix() string { return fmt.Sprint(process, prefixes.Add(1), ":") }

// tape holds the answers to each request in the order they came; a request made
// more often than that gets the last again.
var tape struct {
	sync.Mutex
	loaded, recording bool
	replies           map[string][]string
	played            map[string]int
}

// searchServer returns the URL of a server that can search, or is like one.
func searchServer(t testing.TB) string {
	t.Helper()
	real := os.Getenv(serverVariable)
	if real == "" {
		t.Logf("%s isn't set: what is said about search is played back from %s", serverVariable, tapeFile)
		if err := loadTape(); err != nil {
			t.Fatal(err)
		}
		return startProxy(t, sharedServer(t).addr(), play).url()
	}
	wiped.Do(func() { afterAll = append(afterAll, func() error { return wipe(real, process) }) })
	if os.Getenv(recordVariable) == "1" {
		u, err := url.Parse(real)
		if err != nil {
			t.Fatal("the URL can't be read")
		}
		tape.Lock()
		tape.recording = true
		tape.Unlock()
		return startProxy(t, u.Host, record).url()
	}
	return real
}

var wiped sync.Once

// wipe removes the keys and indexes with the prefix from a server that isn't the
// tests' own.
func wipe(url, prefix string) error {
	target, err := ParseURL(url)
	if err != nil {
		return err
	}
	o := Options{DialTimeout: 5 * time.Second, Timeout: 30 * time.Second}
	client := connect(target, o, newWatch(context.Background(), target.TLS, o), o.Timeout)
	defer client.Close()
	ctx := context.Background()
	names, err := client.Do(ctx, "FT._LIST").StringSlice()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if err := client.Do(ctx, "FT.DROPINDEX", name).Err(); err != nil {
				return err
			}
		}
	}
	remove := func(ctx context.Context, c *goredis.Client) error {
		keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if err := c.Unlink(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		return keys.Err()
	}
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, remove)
	}
	return remove(ctx, client.(*goredis.Client))
}

// prefixOf is the prefix that a command on search has in the name of its index.
func prefixOf(command value) string {
	if len(command.items) < 2 {
		return process
	}
	if prefix := prefixPattern.FindString(command.items[1].text); prefix != "" {
		return prefix
	}
	return process
}

func isSearch(command value) bool { return strings.HasPrefix(command.name(), "FT.") }

func record(command value, forward func() (value, error)) (value, error) {
	reply, err := forward()
	if err == nil && isSearch(command) {
		tape.Lock()
		defer tape.Unlock()
		if tape.replies == nil {
			tape.replies = make(map[string][]string)
		}
		key := request(command)
		tape.replies[key] = append(tape.replies[key], string(reply.replace(prefixOf(command), canonical).append(nil)))
	}
	return reply, err
}

func play(command value, forward func() (value, error)) (value, error) {
	if !isSearch(command) {
		return forward()
	}
	tape.Lock()
	defer tape.Unlock()
	key := request(command)
	replies := tape.replies[key]
	if len(replies) == 0 {
		return value{kind: '-', text: fmt.Sprintf("ERR not on the tape; record it anew (%s=1): %.200s", recordVariable, key)}, nil
	}
	ofTest := prefixOf(command) + key
	i := min(tape.played[ofTest], len(replies)-1)
	tape.played[ofTest]++
	v, err := readValue(bufio.NewReader(strings.NewReader(replies[i])))
	return v.replace(canonical, prefixOf(command)), err
}

// request writes a command as it is on the tape. Parameters and attributes come
// in any order, and are sorted.
func request(command value) string {
	args := command.replace(prefixOf(command), canonical).items
	for i := 0; i+1 < len(args); i++ {
		name := args[i].text
		n, err := strconv.Atoi(args[i+1].text)
		if err == nil && (name == "PARAMS" || name == "HNSW" || name == "FLAT") && i+2+n <= len(args) {
			sortPairs(args[i+2 : i+2+n])
		}
	}
	var b strings.Builder
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		if len(arg.text) > longArgument {
			fmt.Fprintf(&b, "<%d bytes, %x>", len(arg.text), sha256.Sum256([]byte(arg.text)))
			continue
		}
		b.WriteString(strconv.Quote(arg.text))
	}
	return b.String()
}

func sortPairs(list []value) {
	pairs := slices.Collect(slices.Chunk(slices.Clone(list), 2))
	slices.SortFunc(pairs, func(a, b []value) int { return strings.Compare(a[0].text, b[0].text) })
	copy(list, slices.Concat(pairs...))
}

// loadTape reads the tape: a request to a line, and its replies, quoted, on the
// lines below.
func loadTape() error {
	tape.Lock()
	defer tape.Unlock()
	if tape.loaded {
		return nil
	}
	b, err := os.ReadFile(tapeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s; set %s to a Redis with the search module, and %s=1", tapeFile, serverVariable, recordVariable)
	}
	if err != nil {
		return err
	}
	tape.loaded, tape.replies, tape.played = true, make(map[string][]string), make(map[string]int)
	key := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		quoted, isReply := strings.CutPrefix(line, "\t")
		if !isReply {
			key = line
			continue
		}
		reply, err := strconv.Unquote(quoted)
		if err != nil {
			return fmt.Errorf("%s: %w: %.100s", tapeFile, err, quoted)
		}
		tape.replies[key] = append(tape.replies[key], reply)
	}
	return nil
}

// saveTape writes what was recorded.
func saveTape() error {
	tape.Lock()
	defer tape.Unlock()
	if !tape.recording {
		return nil
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(tape.replies)) {
		b.WriteString(key + "\n")
		replies := tape.replies[key]
		// The last is repeated anyway.
		for len(replies) > 1 && replies[len(replies)-1] == replies[len(replies)-2] {
			replies = replies[:len(replies)-1]
		}
		for _, reply := range replies {
			b.WriteString("\t" + strconv.Quote(reply) + "\n")
		}
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		return err
	}
	return os.WriteFile(tapeFile, []byte(b.String()), 0o644)
}
