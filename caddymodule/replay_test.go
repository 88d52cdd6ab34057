package caddymodule_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of TestReplay anew")

// TestReplay sends the requests of testdata/replay, on each store, and compares
// what reached the router and what the client got, byte for byte, with what was
// recorded.
func TestReplay(t *testing.T) {
	paths, err := filepath.Glob("testdata/replay/*.script")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(path, ".script")
		t.Run(filepath.Base(name), func(t *testing.T) {
			for i, kind := range readScript(t, path).stores {
				t.Run(kind, func(t *testing.T) { replay(t, readScript(t, path), kind, name+".golden", *update && i == 0) })
			}
		})
	}
}

// replay plays a script and compares with the recording, or records.
func replay(t *testing.T, s *script, kind, golden string, record bool) {
	got := play(t, s, kind)
	if record {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(want), got)
}

// compare reports the first requests that differ.
func compare(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	const most = 5
	w, g := blocks(want), blocks(got)
	differ := 0
	for i := range max(len(w), len(g)) {
		var x, y string
		if i < len(w) {
			x = w[i]
		}
		if i < len(g) {
			y = g[i]
		}
		if x == y {
			continue
		}
		if differ++; differ <= most {
			x, y := differing(x, y)
			t.Errorf("request %d: recorded, and now:\n%s\n---\n%s", i, x, y)
		}
	}
	t.Errorf("%d of %d requests differ; -update records them anew", differ, len(w))
}

// blocks cuts a recording into requests.
func blocks(text string) []string { return strings.Split(text, "\n--- ") }

// differing returns what lies between the lines that two texts begin and end
// with alike, with the first line of both.
func differing(x, y string) (string, string) {
	a, b := strings.Split(x, "\n"), strings.Split(y, "\n")
	head := a[0]
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return head + "\n" + strings.Join(a, "\n"), strings.Join(b, "\n")
}
