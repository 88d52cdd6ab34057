package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstory-proxy/backstory/store"
)

// crashPath names, in the environment of a child process, the file that it is
// to write to until it is killed.
const crashPath = "BACKSTORY_CRASH_PATH"

// TestCrashChild is no test: it is what TestCrash runs in a process of its own.
func TestCrashChild(t *testing.T) {
	path := os.Getenv(crashPath)
	if path == "" {
		t.Skip("it runs as a child of TestCrash")
	}
	s := openAt(t, path, Options{})
	go func() { // uploads and deletions, to be struck in the middle
		for i := 0; ; i++ {
			id := fmt.Sprintf("f%d-%d", os.Getpid(), i)
			upload(t, s, id, 2*purgeBatch)
			if i%2 == 0 {
				_ = s.DeleteFile(context.Background(), of("a"), id)
			}
		}
	}()
	for worker := range 8 {
		go func() {
			for i := 0; ; i++ {
				session, id := fmt.Sprint("s", worker/2), fmt.Sprintf("%d-%d-%d", os.Getpid(), worker, i)
				if _, err := s.Append(context.Background(), store.Append{Scope: of("a"), Session: session, Exchange: sample(id), Anyway: true}); err != nil {
					fmt.Println("error", err)
					return
				}
				fmt.Println("saved", session, id)
			}
		}()
	}
	select {}
}

// TestCrash kills a process that writes, several times, and looks at what it
// has left: all that it acknowledged, and nothing torn.
func TestCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	path := filepath.Join(t.TempDir(), "backstory.db")
	acknowledged := make(map[string][]string) // by session
	for range 5 {
		strike(t, path, 1+rand.IntN(300), acknowledged)
		s := openAt(t, path, Options{})
		s.tasks.Wait()
		sound(t, s)
		for session, ids := range acknowledged {
			inspect(t, s, session, ids)
		}
		var left int
		if err := s.row(context.Background(), `SELECT count(*) FROM files WHERE dark = 1 OR hidden = 1 OR status = 'uploaded'`).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d files are neither here nor there, %v", left, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// strike has a child write to the file, and kills it when it has acknowledged
// some exchanges.
func strike(t *testing.T, path string, exchanges int, acknowledged map[string][]string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	child.Env = append(os.Environ(), crashPath+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		if n == exchanges {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		line, err := lines.ReadString('\n') // goes on after the kill: what was said before it counts
		if err != nil {
			break
		}
		word := strings.Fields(line)
		if word[0] != "saved" {
			t.Fatalf("the child said %q", line)
		}
		acknowledged[word[1]] = append(acknowledged[word[1]], word[2])
	}
	_ = child.Wait() // it was killed
}

// inspect looks at one session.
func inspect(t *testing.T, s *Store, session string, acknowledged []string) {
	t.Helper()
	list, err := s.Exchanges(context.Background(), of("a"), session, 0, 1<<20, store.Ascending)
	if err != nil {
		t.Fatal(err)
	}
	kept := make(map[string]bool)
	var messages, tokens int64
	for i, e := range list {
		want := sample(e.ID)
		if len(e.Messages) != 2 || string(e.Messages[1].JSON) != string(want.Messages[1].JSON) || e.Offset != tokens || e.Seq != int64(i+1) {
			t.Errorf("%s of session %s is torn", e.ID, session)
		}
		kept[e.ID] = true
		messages += 2
		tokens += int64(e.Tokens())
	}
	for _, id := range acknowledged {
		if !kept[id] {
			t.Errorf("%s of session %s was acknowledged and isn't there", id, session)
		}
	}
	if d, err := s.Session(context.Background(), of("a"), session); err != nil || d.Messages != messages || d.Tokens != tokens {
		t.Errorf("session %s is %+v, %v; it holds %d messages of %d tokens", session, d, err, messages, tokens)
	}
}
