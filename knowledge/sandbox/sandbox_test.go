package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/backstory-proxy/backstory/internal/extracttest"
	"github.com/backstory-proxy/backstory/knowledge/extract"
	"github.com/backstory-proxy/backstory/knowledge/sandbox"
)

// misbehave are children gone wrong, by argument: each is a reader that a file
// has got the better of.
var misbehave = map[string]func(){
	"panic": func() { panic("index out of range") },
	"loop": func() {
		for {
			runtime.Gosched()
		}
	},
	"hang":  func() { select {} },
	"eat":   eat,
	"mute":  func() {},
	"wrong": func() { os.Exit(1) },
	"nonsense": func() {
		_, _ = os.Stdout.WriteString("\x09\x09\x09 nonsense")
		_, _ = os.Stderr.WriteString(`{"info":{"Type":"x"}}`)
	},
	"environment": func() {
		fmt.Fprintf(os.Stderr, "{\"error\":%q}", strings.Join(os.Environ(), " "))
	},
}

// held is what eat has taken.
var held [][]byte

// eat takes memory under the limits of a child, until there is none.
func eat() {
	_ = sandbox.Child(os.Stdin, os.Stdout, os.Stderr) // it sets the limits, and reads a small file
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 512 {
			b[i] = 1
		}
		held = append(held, b)
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		if os.Args[1] == sandbox.Argument {
			if err := sandbox.Child(os.Stdin, os.Stdout, os.Stderr); err != nil {
				os.Exit(1)
			}
			return
		}
		if f := misbehave[os.Args[1]]; f != nil {
			f()
			return
		}
	}
	os.Exit(m.Run())
}

// reader has a child for itself, patient on slow machines; children that
// misbehave are named.
func reader(bad string) *sandbox.Reader {
	r := sandbox.New()
	r.Patience = time.Minute
	if bad != "" {
		r.Command = []string{os.Args[0], bad}
	}
	return r
}

// emptyTemp is a folder for temporary files, which must be empty at the end.
func emptyTemp(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

func TestAChildReadsWhatTheProcessWouldRead(t *testing.T) {
	emptyTemp(t)
	for name, content := range map[string][]byte{
		"a.docx": DOCX(P(Style("H1"), "Title") + P("", "text é")), "a.pptx": PPTX([2]string{"a", "b"}, [2]string{"c", "d"}),
		"a.csv": []byte("a;b\nc;d\n"), "a.txt": Encode("shift_jis", "これは日本語です。"), "a.pdf": PDF("one", "two"),
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []extract.Block
			info, err := extract.Read(t.Context(), name, content, func(b extract.Block) error { want = append(want, b); return nil })
			if err != nil {
				t.Fatal(err)
			}
			text, err := reader("").Read(t.Context(), "acme", name, bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			defer text.Close()
			for b, err := range text.Blocks() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, b)
			}
			if text.Info != info || len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v: got %+v, want %+v", text.Info, got, want)
			}
		})
	}
}

func TestWhatAFileDoesToItsReaderIsToldOfTheFile(t *testing.T) {
	emptyTemp(t)
	for name, c := range map[string]struct{ child, reason string }{
		"a refusal":       {"", "an image"},
		"a panic":         {"panic", "its reader failed on it"},
		"an endless loop": {"loop", "takes too long"},
		"a deadlock":      {"hang", "takes too long"},
		"greed":           {"eat", "too much memory"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.child == "eat" && runtime.GOOS != "linux" {
				t.Skip("memory is limited on Linux only")
			}
			r := reader(c.child)
			if c.child == "loop" || c.child == "hang" {
				r.Patience = 300 * time.Millisecond
			}
			if c.child == "eat" { // the others wouldn't start a thread below it, under the race detector
				r.Memory = 128 << 20
			}
			_, err := r.Read(t.Context(), "acme", "a.png", strings.NewReader("\x89PNG\x00"))
			var told *extract.Error
			if c.child == "eat" && err != nil && strings.Contains(err.Error(), "ThreadSanitizer") && strings.Contains(err.Error(), "failed to allocate") {
				return // it was the race detector that got no more
			}
			if !errors.As(err, &told) || !strings.Contains(told.Message, c.reason) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWhatIsWrongWithTheMachineIsNotToldOfTheFile(t *testing.T) {
	emptyTemp(t)
	for name, r := range map[string]*sandbox.Reader{
		"another program": reader("mute"), "a failure": reader("wrong"), "no program": {},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no program" {
				r = sandbox.New()
				r.Command = []string{"/nowhere/at/all"}
			}
			_, err := r.Read(t.Context(), "acme", "a.txt", strings.NewReader("text"))
			var told *extract.Error
			if !errors.Is(err, sandbox.ErrFailed) || errors.As(err, &told) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAChildGetsNoSecrets(t *testing.T) {
	t.Setenv("SERVICE_KEY", "secret")
	_, err := reader("environment").Read(t.Context(), "acme", "a.txt", strings.NewReader("text"))
	if err == nil || !strings.Contains(err.Error(), "PATH=") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestNonsenseFromAChildIsAnError(t *testing.T) {
	text, err := reader("nonsense").Read(t.Context(), "acme", "a.txt", strings.NewReader("text"))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	for _, err = range text.Blocks() {
		if err != nil {
			return
		}
	}
	t.Error("there was none")
}

func TestAClientThatLeavesEndsTheChild(t *testing.T) {
	emptyTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	r := reader("loop") // would take a minute; more of them than run at once
	for range 3 * runtime.GOMAXPROCS(0) {
		group.Go(func() {
			if _, err := r.Read(ctx, "acme", "a.txt", strings.NewReader("text")); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	cancel()
	group.Wait() // a test that hangs here has failed
}
