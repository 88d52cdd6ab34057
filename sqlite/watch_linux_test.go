package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheHeaderIsReadWhereverTheFileLies(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "backstory.db")
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link, path} {
		s := openAt(t, p, Options{})
		if _, ok := s.writer.cache.watch.(*headerWatch); !ok {
			t.Errorf("%s: the watch is a %T", p, s.writer.cache.watch)
		}
	}
}

func TestAFileThatIsNotOpenHasNoHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backstory.db")
	write(t, path+"-shm", string(make([]byte, 1<<15)))
	if _, err := newHeaderWatch(path); err == nil {
		t.Error("it was mapped")
	}
}
