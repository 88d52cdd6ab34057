package journal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// otherPath names, in the environment of a child process, the file that it is to
// open as another proxy does.
const otherPath = "BACKSTORY_JOURNAL_PATH"

// TestOtherProcess is no test: it is what others run in a process of its own. It
// tells how many exchanges the process takes for its own.
func TestOtherProcess(t *testing.T) {
	path := os.Getenv(otherPath)
	if path == "" {
		t.Skip("it runs as a child of another test")
	}
	j := open(t, path, &fake{down: true}, nil)
	fmt.Print(j.Depth(), " of ", rows(t, path))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	os.Exit(0) // without a word of the test's own
}

// taken is what another process finds in the file, and takes.
func taken(t *testing.T, path string) string {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	c.Env = append(os.Environ(), otherPath+"="+path)
	told, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	return string(told)
}

// A process loses its POSIX locks on a file when it closes any descriptor of it,
// and another one would take its place.
func TestAFileThatIsOpenedTwiceStaysLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.db")
	j := open(t, path, &fake{down: true}, nil)
	add(t, j, entry("s", "1"))
	if got := taken(t, path); got != "0 of 1" {
		t.Errorf("another process took %s", got)
	}
	second := open(t, path, &fake{down: true}, nil) // while the first is needed still, as over a reload
	if got := taken(t, path); got != "0 of 1" {
		t.Errorf("another process took %s", got)
	}
	_, _ = second.Close(), j.Close()
	if got := taken(t, path); got != "1 of 1" {
		t.Errorf("when all are closed, another process took %s", got)
	}
}
