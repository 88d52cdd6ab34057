package caddymodule_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASecondProcessSaysWhatItSharesWithTheFirst(t *testing.T) {
	upstream := newFake(t)
	dir := t.TempDir()
	said := func(log string) string {
		b, _ := os.ReadFile(log)
		return string(b)
	}
	process := func(name, database, address string) (log string) {
		log = filepath.Join(dir, name+".log")
		startProcessWith(t, processOptions{
			upstream: upstream.URL, store: "sqlite " + filepath.Join(dir, database), admin: "off", address: address,
			global: "log {\noutput file " + log + "\n}",
		})
		return log
	}
	const onPort, onFile = "another process listens on the same port", "another process has this database open"
	address := freeAddress(t)
	first := process("first", "a.db", address)
	onSamePort := process("port", "b.db", address)
	eventually(t, "it says that it shares the port", func() bool { return strings.Contains(said(onSamePort), onPort) })
	onSameFile := process("file", "a.db", freeAddress(t))
	eventually(t, "it says that it shares the file", func() bool { return strings.Contains(said(onSameFile), onFile) })
	if log := said(first); strings.Contains(log, onFile) {
		t.Errorf("the first one said\n%s", log)
	}
	if log := said(onSamePort); strings.Contains(log, onFile) {
		t.Errorf("it shares only the port, and said\n%s", log)
	}
}
